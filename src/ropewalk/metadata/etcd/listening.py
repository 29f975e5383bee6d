"""Hearing what others write to etcd, and being heard of oneself.

A watch brings what was written within milliseconds. It may die without a sign, lag, or be cancelled because etcd has
forgotten what it wanted to begin with, so silence is checked by reading, and whatever a watch fails to bring is read.
"""

import asyncio
from contextlib import suppress
from typing import Final

from ropewalk.base.errors import CannotFollow, CorruptMetadata, MetadataUnavailable, RopewalkError
from ropewalk.base.limits import ETCD_LEASE_S, ETCD_WATCH_SILENT_MS_MAX
from ropewalk.metadata.etcd import messages
from ropewalk.metadata.etcd.client import Refused, Unanswered, Unreachable, Watch
from ropewalk.metadata.etcd.messages import KeptAlive
from ropewalk.metadata.etcd.mirror import Seat
from ropewalk.metadata.etcd.store import Store

_PAUSE_S: Final = 0.2
"""Before a lost watch is tried again, so that a member that refuses is not asked in a tight loop."""


class Listening:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._seat: Seat | None = None
        self._lease = 0
        self._has_heard = False
        """Whether the watch that is under way has brought anything, or was silent for long."""

    def keep(self, seat: Seat, lease: int) -> None:
        """This process holds the log since `seat`; `run` keeps that known, by `lease` at first."""
        self._seat, self._lease = seat, lease

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen())
            tasks.create_task(self._keep_alive())

    async def _listen(self) -> None:
        while True:
            try:
                revision = await self._store.read()
                if not await self._watch(revision + 1):
                    await asyncio.sleep(_PAUSE_S)  # etcd will not be listened to; nor may it the next time
            except (MetadataUnavailable, CorruptMetadata, Unreachable, Unanswered):
                await asyncio.sleep(_PAUSE_S)
            except CannotFollow:
                await asyncio.get_running_loop().create_future()  # there is nothing to hear any more

    async def _watch(self, start_revision: int) -> bool:
        """Until it has ended, or proved deaf. False if etcd ended it before it had brought anything."""
        keys = self._store.keys
        watch = await self._store.client.watch(
            messages.watch(keys.first, end=keys.beyond, start_revision=start_revision)
        )
        self._has_heard = False
        try:
            while await self._hear(watch):
                pass
        finally:
            watch.close()
        return self._has_heard

    async def _hear(self, watch: Watch) -> bool:
        """False when the watch is of no more use."""
        try:
            async with asyncio.timeout(ETCD_WATCH_SILENT_MS_MAX / 1000):
                answer = await watch.next()
        except TimeoutError:
            self._has_heard = True
            return not await self._has_missed_something()
        self._has_heard |= bool(answer.events)
        return self._store.on_events(answer.events) and not answer.canceled

    async def _has_missed_something(self) -> bool:
        mirror = self._store.mirror
        before = (mirror.end_offset, mirror.seat, mirror.pointer_revision)
        await self._store.read()
        return before != (mirror.end_offset, mirror.seat, mirror.pointer_revision)

    async def _keep_alive(self) -> None:
        while True:
            pause_s = ETCD_LEASE_S / 3
            is_held = self._seat is not None and self._store.mirror.seat == self._seat
            if self._seat is not None and is_held and self._store.parted is None:
                try:
                    await self._renew(self._seat)
                except (RopewalkError, Refused, Unreachable, Unanswered):
                    # Granted anew, and soon: an etcd that is back gives every lease its whole time once more.
                    self._lease, pause_s = 0, _PAUSE_S
            with suppress(Refused, Unreachable):  # it stays as bad as it was known to be
                await self._store.check_space()
            await asyncio.sleep(pause_s)

    async def _renew(self, seat: Seat) -> None:
        client = self._store.client
        if self._lease:
            kept = await client.ask(messages.KEEP_ALIVE, {"ID": self._lease}, KeptAlive)
            if kept.result.TTL > 0:
                return
        lease = await self._store.grant()
        if await self._store.write_as(seat.revision, [self._store.says_alive(seat.held, lease)]) is not None:
            self._lease = lease
