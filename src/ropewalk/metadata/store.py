"""The image of this node, kept in step with its log, and the one way to change it.

A change is a decision: a function that reads the image and answers with records, or refuses with an operating
error. Changes are made one at a time, each decided on an image that holds all before it, so a decision never
sees facts that are not committed and nothing it saw has changed when its records are.

What a reader could get wrong
    The work is done by `run`, not by whoever asked: a client that goes away cannot leave a change half made.
    A `TimedOut` means the log could not tell; the change may have been made.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from ropewalk.base.errors import NodeStopping, RopewalkError, StorageFailed, Throttled, TimedOut
from ropewalk.base.limits import METADATA_CHANGES_WAITING_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import Committed, MetadataLog, Raced, Snapshot, Unknown
from ropewalk.metadata.records import MetadataRecord

Decision: TypeAlias = Callable[[Image], Sequence[MetadataRecord]]
Records: TypeAlias = tuple[MetadataRecord, ...]


class MetadataStore:
    """`on_applied` hears of records the moment the image holds them, before any other code runs."""

    def __init__(self, log: MetadataLog, on_applied: Callable[[Records], None]) -> None:
        self.image = Image()
        self._log = log
        self._on_applied = on_applied
        self._waiting: deque[tuple[Decision, asyncio.Future[Records]]] = deque()
        self._wake = asyncio.Event()
        self._stopped = False

    async def load(self) -> None:
        """Bring the image up to the end of the log. Once, before `run`; `on_applied` is not called."""
        await self._restart_from_snapshot()
        for record in await self._log.tail(self.image.end_offset) or ():
            self.image.apply(record)

    async def change(self, decide: Decision) -> Records:
        """Decide, commit, apply; the records that were committed, none if there was nothing to do.

        Whatever `decide` refuses with is raised here. It may be called more than once, and must only read.
        """
        if self._stopped:
            raise NodeStopping("the node is stopping; cluster facts no longer change")
        if len(self._waiting) >= METADATA_CHANGES_WAITING_MAX:
            raise Throttled(f"{len(self._waiting)} changes of cluster facts are waiting; try again later")
        future: asyncio.Future[Records] = asyncio.get_running_loop().create_future()
        self._waiting.append((decide, future))
        self._wake.set()
        return await future

    async def run(self) -> None:
        """Make changes until cancelled. An error that escapes means the log failed: the node must stop."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    await self._answer(*self._waiting[0])
                    self._waiting.popleft()
        finally:
            self._stopped = True
            while self._waiting:
                _, future = self._waiting.popleft()
                if not future.done():
                    future.set_exception(NodeStopping("the node stopped; the change may have been made"))

    async def _answer(self, decide: Decision, future: "asyncio.Future[Records]") -> None:
        if future.done():
            return  # Whoever asked has gone, and nothing was begun.
        try:
            records = await self._carry_out(decide)
        except RopewalkError as error:
            if not future.done():
                future.set_exception(error)
            return
        if not future.done():
            future.set_result(records)

    async def _carry_out(self, decide: Decision) -> Records:
        while True:
            records = tuple(decide(self.image))
            if not records:
                return ()
            start_offset = self.image.end_offset
            outcome = await self._log.append(
                records, expected_epoch=self._log.epoch, expected_end_offset=start_offset
            )
            match outcome:
                case Committed():
                    self._apply(records)
                    await self._fold()
                    return records
                case Raced():
                    await self._catch_up()
                case Unknown(reason=reason):
                    if (await self._catch_up())[: len(records)] == records:
                        return records
                    raise TimedOut(f"the change may have been made: {reason}")

    async def _catch_up(self) -> Records:
        """Apply what others committed. Returns it, or nothing where it had to start again from a snapshot."""
        records = await self._log.tail(self.image.end_offset)
        if records is None:
            await self._restart_from_snapshot()
            self._apply(await self._log.tail(self.image.end_offset) or ())
            return ()
        self._apply(records)
        return records

    def _apply(self, records: Records) -> None:
        for record in records:
            self.image.apply(record)
        self._on_applied(records)

    async def _restart_from_snapshot(self) -> None:
        snapshot = await self._log.snapshot()
        self.image.restart(snapshot.facts, snapshot.end_offset)

    async def _fold(self) -> None:
        if self._log.snapshot_due:
            facts = tuple(self.image.facts())
            # With a full disk the log merely stays long; the change itself is committed.
            with suppress(StorageFailed):
                await self._log.write_snapshot(Snapshot(self._log.epoch, self.image.end_offset, facts))
