"""Group commit: one sync for all the writes that wait, over all partitions of the node.

While one sync runs, writes gather for the next; nobody waits longer than two syncs, and the number of
syncs does not depend on the number of writers. A few files are synced by the kernel side by side, without a thread (ADR 0017).
More of them, and names, are synced in the pool: on a file system where `syncfs` is trusted one call covers every partition;
elsewhere each dirty file is synced by itself (ADR 0003).

What a reader could get wrong
    A sync covers what was written before it began: the end offsets are noted first.
    After a failed sync the page cache may hold pages that the kernel believes clean and the disk never got
    (fsyncgate). `run` ends with that error, and the node ends with `run`. The error may have been told to somebody else in
    this process, so that is looked at before anybody hears that something is durable.
    Nobody else syncs through what is opened here: an error is told once to each open description.
    A sync that is under way names files and directories of partitions that were forgotten meanwhile. Nobody may take
    those away under it: a directory that is not there is an error like any other (`left`). What counts is the log: the
    sync may be that of a leader, and the one who goes the follower that took the log over from it.
    Whoever has let go of its log may still be noted by somebody who has not heard of it; that is nothing to sync.
"""

import asyncio

from ropewalk.base.durations import Durations
from ropewalk.base.limits import SYNC_FILES_AT_ONCE_MAX, SYNC_FILES_SINGLY_MAX
from ropewalk.base.ports import Clock, Disk, File, Pool
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.log.log import Log, SyncTargets
from ropewalk.runtime.bell import Bell


class GroupCommit:
    def __init__(self, disk: Disk, pool: Pool, clock: Clock) -> None:
        self._disk = disk
        self._everything = disk.open_everything() if disk.can_sync_everything else None
        self._pool = pool
        self._clock = clock
        self._dirty: dict[Hosted, None] = {}
        self._syncing: dict[Hosted, SyncTargets] = {}
        self._moved: dict[Hosted, None] = {}
        self._at_disk: frozenset[Log] = frozenset()
        """Those that the sync under way is about, forgotten or not."""
        self._leaving: list[asyncio.Future[None]] = []
        self._wake = Bell()
        self._settled: list[asyncio.Future[None]] = []
        self._covered: list[asyncio.Future[None]] = []
        self.durations = Durations()

    def note(self, partition: Hosted) -> None:
        """`partition` has bytes that somebody waits for."""
        if partition.is_over:
            return
        self._dirty[partition] = None
        self._wake.ring()

    def forget(self, partition: Hosted) -> None:
        self._dirty.pop(partition, None)
        self._syncing.pop(partition, None)
        self._moved.pop(partition, None)

    async def left(self, partition: Hosted) -> None:
        """Return when no sync has anything to do with the partition's log any more. Forget it first."""
        while partition.log in self._at_disk:
            leaving: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._leaving.append(leaving)
            await leaving

    def waiting(self) -> list[Hosted]:
        """The partitions on which somebody may be waiting for the disk."""
        return [*self._syncing, *self._dirty]

    def take_moved(self) -> list[Hosted]:
        """The partitions whose durable offset has moved since this was asked last."""
        moved, self._moved = list(self._moved), {}
        return moved

    async def settle(self) -> None:
        """Return when everything noted so far is durable; `run` does the work."""
        if self._dirty or self._syncing:
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._settled.append(settled)
            await settled

    async def covered(self) -> None:
        """Return when a sync that has yet to begin is done: it covers everything noted by now. Others may go on writing."""
        covered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._covered.append(covered)
        self._wake.ring()
        await covered

    async def run(self) -> None:
        while True:
            if not self._dirty and not self._covered:
                await self._wake.wait()
            await self.commit()

    async def commit(self) -> None:
        """Make everything noted so far durable, and say so to the partitions."""
        self._syncing = {partition: partition.begin_sync() for partition in self._dirty}
        self._dirty = {}
        self._at_disk = frozenset([partition.log for partition in self._syncing])
        covered, self._covered = self._covered, []
        targets = list(self._syncing.values())
        began_ms = self._clock.monotonic_ms()
        await (self._begin(targets) or self._pool.run(self._sync, targets))
        self._disk.syncs.check()
        self.durations.add(self._clock.monotonic_ms() - began_ms)
        synced, self._syncing, self._at_disk = self._syncing, {}, frozenset()
        for partition, target in synced.items():
            partition.on_durable(target.end_offset)
            self._moved[partition] = None
        leaving, self._leaving = self._leaving, []
        for each in (*covered, *leaving):
            if not each.done():  # whoever waited may have gone
                each.set_result(None)
        if not self._dirty:
            waiting, self._settled = self._settled, []
            for settled in waiting:
                settled.set_result(None)

    def _begin(self, targets: list[SyncTargets]) -> "asyncio.Future[None] | None":
        """Without a thread; None where that is not possible, or where one sync of everything is the better one."""
        files: list[File] = []
        for target in targets:
            if target.has_reopened or target.directories:
                return None
            files += target.files
        if not 0 < len(files) <= SYNC_FILES_AT_ONCE_MAX:
            return None
        return self._disk.begin_sync(files)

    def _sync(self, targets: list[SyncTargets]) -> None:
        try:
            self._sync_all(targets)
        except OSError as error:  # whatever it is, it must not be tried again
            raise self._disk.syncs.fail(error) from error

    def _sync_all(self, targets: list[SyncTargets]) -> None:
        self._disk.syncs.check()
        file_count = sum(len(target.files) + len(target.directories) for target in targets)
        has_reopened = any(target.has_reopened for target in targets)
        if self._everything is not None and (has_reopened or file_count > SYNC_FILES_SINGLY_MAX):
            self._everything.sync()
            return
        for target in targets:
            for file in target.files:
                file.sync()
            for directory in target.directories:
                self._disk.sync_directory(directory)
