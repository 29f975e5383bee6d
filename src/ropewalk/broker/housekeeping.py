"""What time demands of a broker: expired waits, checkpoints, snapshots, retention, compaction, scrubbing.

One loop with one tick a second does all of it, in the disk pool where it waits for the disk. No timer and no
task exists per partition.

What a reader could get wrong
    A full disk stops none of this: what could not be written is tried again at the next tick. Any other failure
    to write ends the node.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from itertools import chain
from typing import Final

import structlog

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import Offset
from ropewalk.base.limits import SCRUB_BYTES_PER_TICK, SCRUB_DELAY_MS, SCRUB_REST_MS
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.cluster import Cluster
from ropewalk.broker.compactor import Compactor
from ropewalk.broker.log_starts import NO_ROOM
from ropewalk.broker.partition import Partition
from ropewalk.broker.partitions import Home, Partitions
from ropewalk.metadata.settings.effective import SettingsView

_log = structlog.get_logger()

TICK_S: Final = 1.0


class Housekeeping:
    def __init__(
        self,
        cluster: Cluster,
        partitions: Partitions,
        disk: Home,
        memory: Home,
        view: SettingsView,
        pool: Pool,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self._disk = disk
        self._memory = memory
        self._view = view
        self._pool = pool
        self._clock = clock
        self._saved_points: dict[str, Offset] = {}
        self._retention_due_ms = 0.0
        self.compactor = Compactor(partitions, pool, clock)
        self._compaction_due_ms = 0.0
        self._scrub_due_ms = 0.0
        self._scrubbing: Iterator[Partition] = iter(partitions)

    async def run(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._retention_due_ms = now_ms + self._retention_interval_ms()
        self._compaction_due_ms = now_ms + self._compaction_rest_ms()
        self._scrub_due_ms = now_ms + SCRUB_DELAY_MS
        while True:
            await asyncio.sleep(TICK_S)
            await self.tick()

    async def tick(self) -> None:
        now_ms = self._clock.monotonic_ms()
        for partition in self._disk.commits.waiting():
            partition.expire(now_ms)
        if self._partitions.unopened_count:
            await self._cluster.propose(lambda _: ())  # nothing changes, but the partitions follow again
        await _tolerating_a_full_disk(self._save_recovery_points())
        await _tolerating_a_full_disk(self._write_snapshots())
        if now_ms >= self._retention_due_ms:
            self._retention_due_ms = now_ms + self._retention_interval_ms()
            await self.apply_retention()
        if now_ms >= self._compaction_due_ms:
            await _tolerating_a_full_disk(self._compact(now_ms))
        if now_ms >= self._scrub_due_ms and not await self.scrub():
            self._scrub_due_ms = now_ms + SCRUB_REST_MS

    async def apply_retention(self) -> None:
        """Delete what has expired, in all partitions."""
        moved: list[Partition] = []
        now_ms = self._clock.now_ms()
        for partition in self._partitions:
            try:
                partition.log.roll_if_due(now_ms)
                has_moved = partition.apply_retention(now_ms)
            except StorageFailed as error:
                _log.warning("retention was put off", partition=str(partition.name), reason=str(error))
                continue
            if has_moved:
                home = self._partitions.home_of(partition)
                home.directory.note(partition.name, partition.topic_id, partition.log)
                moved.append(partition)
        for home in (self._disk, self._memory):
            here = [partition for partition in moved if self._partitions.home_of(partition) is home]
            if here:
                await self._remove(home, here)

    async def _remove(self, home: Home, moved: list[Partition]) -> None:
        try:
            durable = await home.log_starts.save()
        except StorageFailed as error:
            _log.warning("retention was put off", reason=str(error))
            return
        for partition in moved:
            await self._partitions.remove_expired(partition, durable)

    async def _compact(self, now_ms: float) -> None:
        if not await self.compactor.step():
            self._compaction_due_ms = now_ms + self._compaction_rest_ms()

    async def _save_recovery_points(self) -> None:
        directory = self._disk.directory
        moved = False
        for partition in self._partitions:
            if partition.in_memory:
                continue
            point = partition.log.recovery_point
            if self._saved_points.get(str(partition.name)) != point:
                directory.note(partition.name, partition.topic_id, partition.log)
                moved = True
        if moved:
            write = directory.take_recovery_points()
            await self._pool.run(write.run)
            self._saved_points = write.offsets

    async def _write_snapshots(self) -> None:
        for partition in self._partitions:
            snapshot = partition.log.take_snapshot(self._clock.now_ms())
            if snapshot is not None:
                await self._pool.run(snapshot.run)
                partition.log.on_snapshot(snapshot)

    async def scrub(self) -> bool:
        """Verify the next stretch of closed segments; False when a round is over."""
        for partition in self._scrubbing:
            scrub = partition.log.take_scrub(SCRUB_BYTES_PER_TICK)
            if scrub is None:
                continue
            await self._pool.run(scrub.run)
            partition.log.on_scrubbed(scrub)
            for damaged in scrub.damaged:
                _log.error(
                    "partition is damaged: reads of this range are refused",
                    partition=str(partition.name),
                    start_offset=damaged.start_offset,
                    end_offset=damaged.end_offset,
                )
            self._scrubbing = chain((partition,), self._scrubbing)
            return True
        self._scrubbing = iter(self._partitions)
        return False

    def _retention_interval_ms(self) -> int:
        return self._number("log.retention.check.interval.ms")

    def _compaction_rest_ms(self) -> int:
        return self._number("log.cleaner.backoff.ms")

    def _number(self, name: str) -> int:
        value = self._view.of_broker(name).parsed
        assert isinstance(value, int), "the catalogue says it is a number"
        return value


async def _tolerating_a_full_disk(work: Awaitable[None]) -> None:
    try:
        await work
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _log.warning("the disk is full; writes are refused until there is room", reason=error.strerror)
