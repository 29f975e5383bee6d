"""Whoever runs the node: starts it, starts it again when it is gone, and stops it in order when told to."""

import asyncio
import errno
import random
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from ropewalk.sim.judges.history import Journal, StartFailed, SurvivedFailedSync, WriteBackFailed
from ropewalk.sim.machines.process import Died
from ropewalk.sim.machines.storage import StoredFile
from ropewalk.sim.machines.world import Machine, NodePorts, World

ERRORS: Final = (errno.EIO, errno.EIO, errno.ENOSPC, errno.EDQUOT)
"""What a disk may answer to a sync."""

RESERVE_PATH = "/data/reserve"
RESERVE_BYTES_MIN = 1 << 14
"""Of what a node keeps back of its disk: a start takes far less."""

FAILED_SYNC_GRACE_S = 5.0
"""A node that has met a failed sync must be gone by then."""


def draw_error(rng: random.Random) -> int:
    return rng.choice(ERRORS)


class RunningNode(Protocol):
    async def stop(self) -> None: ...


Boot = Callable[[NodePorts], Coroutine[Any, Any, RunningNode]]


class Keeper:
    def __init__(self, world: World, machine: Machine, boot: Boot, journal: Journal) -> None:
        self._world = world
        self._machine = machine
        self._boot = boot
        self._journal = journal
        self._rng = world.rng_for("keeper")
        self._node: RunningNode | None = None
        self._is_busy = False

    async def keep_running(self) -> None:
        """Start the node again a while after it is gone, for ever."""
        while True:
            if not self._machine.is_running and not self._is_busy:
                await asyncio.sleep(self._rng.uniform(0.0, 1.0))
                if not self._machine.is_running and not self._is_busy:
                    await self.start()
            await asyncio.sleep(0.1)

    async def start(self) -> bool:
        """One attempt; False if the node is not there afterwards."""
        sync_failure_count = self._machine.platters.sync_failure_count
        had_failed = self._machine.platters.has_failed
        if had_failed:
            self._journal.note(WriteBackFailed())
        try:
            self._node = await self._machine.start(self._boot)
        except Died:
            return False
        except Exception as error:  # noqa: BLE001  # whatever keeps a node from starting, it is evidence
            if self._machine.platters.sync_failure_count > sync_failure_count:
                self.replace_lying_cache()
            elif not self._machine.platters.is_short_of_room or self._has_reserve():
                self._journal.note(StartFailed(self._machine.name, repr(error)))
            return False
        if self._machine.platters.has_failed and not had_failed:  # perhaps before the logs were looked at
            self._journal.note(WriteBackFailed())
        return True

    def _has_reserve(self) -> bool:
        """Whether a node has what it needs to start with a full disk. A power cut may have come before it was kept back."""
        reserve = self._machine.platters.find(RESERVE_PATH)
        return isinstance(reserve, StoredFile) and len(reserve.data) >= RESERVE_BYTES_MIN

    async def stop(self) -> None:
        """SIGTERM: the node closes its books and leaves. It runs in its own process, as far as it gets."""
        process = self._machine.process
        if process is None or self._node is None or not self._machine.has_started:
            return
        self._is_busy = True
        self._world.sometimes.note("the node was stopped in order")
        stopping = self._run_inside(self._node.stop())
        done, _ = await asyncio.wait([stopping], timeout=30)
        assert done or not process.alive, "the node did not stop within 30 seconds"
        if done and not stopping.cancelled() and (error := stopping.exception()) is not None:
            self._world.trace.note("stop fails", repr(error))
        if process.alive:
            process.die("stopped")
        self._is_busy = False

    async def stop_while_sync_fails(self, *, after: int, code: int, only_unawaited: bool) -> None:
        """SIGTERM, and one of the syncs that are under way then, or come, fails; or one of those alone that nobody waits for any more.
        Nobody cuts the power: whoever is started next finds a page cache that shows more than the platter has."""
        platters = self._machine.platters
        count = platters.sync_failure_count
        platters.fail_syncs(1, after=after, code=code, only_unawaited=only_unawaited)
        await self.stop()
        platters.fail_syncs(0)
        if platters.sync_failure_count > count:
            self._world.sometimes.note("a sync failed while the node was stopping")
            if await self.start():
                self._world.sometimes.note("the node started on a page cache that lies")

    async def fail_sync(
        self, arm: Callable[[], None] | None = None, *, is_lying: Callable[[], bool] = lambda: False
    ) -> None:
        """Let a sync fail, the next one unless `arm` chooses; see to it that the node does not survive it, and
        reboot the machine. A node that was told of no failure may live: then it is rebooted only if the cache `is_lying`."""
        platters = self._machine.platters
        count = platters.sync_failure_count
        process = self._machine.process
        if arm is None:
            platters.fail_syncs(1, code=draw_error(self._rng))
        else:
            arm()
        for _ in range(100):
            if platters.sync_failure_count > count:
                break
            await asyncio.sleep(0.05)
        else:
            platters.fail_syncs(0)
            platters.forget_creation()
            if is_lying():
                self.replace_lying_cache()
            return
        for _ in range(int(FAILED_SYNC_GRACE_S / 0.05)):
            if process is None or not process.alive:
                self._world.sometimes.note("the node died of a failed sync")
                break
            await asyncio.sleep(0.05)
        else:
            self._journal.note(SurvivedFailedSync(self._machine.name))
        self.replace_lying_cache()

    def replace_lying_cache(self) -> None:
        """After a failed sync the page cache shows what the platter lacks; only a reboot makes it honest."""
        self._machine.cut_power()

    def _run_inside(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        process = self._machine.process
        assert process is not None, "it runs"
        return self._world.loop.create_task(work, context=process.context())
