"""What time demands of a broker: expired waits, checkpoints, snapshots, retention, compaction, scrubbing.

One loop with one tick a second does all of it, in the disk pool where it waits for the disk. No timer and no
task exists per partition.

What a reader could get wrong
    A full disk stops none of this but what would fill it further, snapshots and compaction: what could not be written is tried again at
    the next tick. Retention is in more of a hurry then. Any other failure to write ends the node.
    A node may hold thousands of partitions that nobody touches. What a tick does for all of them, it does in turns, and
    a topic may be deleted between two of them. All that a tick does goes at one pace: walks that each stay within a turn
    would together hold the loop for many of them.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from itertools import chain, islice
from typing import Final

import structlog

from ropewalk.base.errors import StorageFailed
from ropewalk.base.limits import (
    HIGH_WATERMARKS_SAVED_MS,
    PARTITIONS_PER_TURN,
    RETENTION_WHEN_FULL_MS,
    SCRUB_BYTES_PER_TICK,
    SCRUB_DELAY_MS,
    SCRUB_REST_MS,
)
from ropewalk.base.ports import Pool
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.partitions.believed_clock import BelievedClock
from ropewalk.broker.partitions.checkpoint_saving import NO_ROOM
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.upkeep.compactor import Compactor
from ropewalk.metadata.settings.effective import SettingsView
from ropewalk.runtime.steps import Pace

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
        clock: BelievedClock,
    ) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self._disk = disk
        self._memory = memory
        self._view = view
        self._pool = pool
        self._clock = clock
        self._points_moved = False
        self._snapshotting: Iterator[Hosted] = iter(partitions)
        self._retention_due_ms = 0.0
        self._retained_ms = 0.0
        """When retention looked last."""
        self._work = partitions.log_work
        self._pace = Pace(PARTITIONS_PER_TURN)
        self.compactor = Compactor(partitions, self._work, pool, clock, self._pace)
        self._compaction_due_ms = 0.0
        self._high_watermarks_due_ms = 0.0
        self._scrub_due_ms = 0.0
        self._scrubbing: Iterator[Hosted] = iter(partitions)

    async def run(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._retention_due_ms = now_ms + self._retention_interval_ms()
        self._retained_ms = now_ms
        self._compaction_due_ms = now_ms + self._compaction_rest_ms()
        self._scrub_due_ms = now_ms + SCRUB_DELAY_MS
        while True:
            await asyncio.sleep(TICK_S)
            await self.tick()

    async def tick(self) -> None:
        self._disk.directory.storage.disk.syncs.check()  # an error may have gone to somebody who was cancelled
        now_ms = self._clock.monotonic_ms()
        for partition in self._disk.commits.waiting():
            partition.expire(now_ms)
        self._partitions.marks.tick()
        if self._partitions.unopened_count:
            # Nothing has changed, but the partitions follow again. Nobody waits here: what is followed may have to wait for this.
            self._cluster.facts.follow_soon()
        if self._disk.directory.storage.files.is_crowded:
            await self._sync_unflushed()
        await self._tolerating_a_full_disk(self._save_recovery_points())
        if now_ms >= self._high_watermarks_due_ms:
            self._high_watermarks_due_ms = now_ms + HIGH_WATERMARKS_SAVED_MS
            await self._tolerating_a_full_disk(self._save_high_watermarks())
        is_full = self._disk.room.is_full
        if is_full:
            self._retention_due_ms = min(self._retention_due_ms, self._retained_ms + RETENTION_WHEN_FULL_MS)
        else:
            await self._tolerating_a_full_disk(self._write_snapshots())
        if now_ms >= self._retention_due_ms:
            self._retention_due_ms = now_ms + self._retention_interval_ms()
            self._retained_ms = now_ms
            await self.apply_retention()
        if now_ms >= self._compaction_due_ms and not is_full:
            await self._tolerating_a_full_disk(self._compact(now_ms))
        if now_ms >= self._scrub_due_ms and not await self.scrub():
            self._scrub_due_ms = now_ms + SCRUB_REST_MS

    async def apply_retention(self) -> None:
        """Delete what has expired, in all partitions."""
        expired: list[Hosted] = []
        now_ms = self._clock.expiry_ms()
        for partition in self._partitions:
            await self._pace.next()
            if not self._may_work_at(partition):
                continue
            try:
                partition.log.roll_if_due(now_ms)
                has_expired = partition.log.trimming.plan_retention(
                    limit_offset=partition.last_stable_offset, now_ms=now_ms
                )
            except StorageFailed as error:
                _log.warning("retention was put off", partition=str(partition.name), reason=str(error))
                continue
            if has_expired:
                await self._partitions.remember_producers(partition)
                if not self._may_work_at(partition):
                    continue
                home = self._partitions.home_of(partition)
                home.directory.note(partition.name, partition.topic_id, partition.log)
                expired.append(partition)
        for home in (self._disk, self._memory):
            here = [partition for partition in expired if self._partitions.home_of(partition) is home]
            if here:
                await self._remove(home, here)

    async def _remove(self, home: Home, expired: list[Hosted]) -> None:
        try:
            durable = await home.log_starts.save()
        except StorageFailed as error:
            _log.warning("retention was put off", reason=str(error))
            return
        for partition in expired:
            if self._partitions.hosts(partition):
                await self._partitions.remove_expired(partition, durable)

    async def _compact(self, now_ms: float) -> None:
        if not await self.compactor.step():
            self._compaction_due_ms = now_ms + self._compaction_rest_ms()

    async def _save_recovery_points(self) -> None:
        directory = self._disk.directory
        for partition in self._disk.commits.take_moved():
            directory.note(partition.name, partition.topic_id, partition.log)
            self._points_moved = True
        if self._points_moved:
            await self._disk.recovery_points.save()
            self._points_moved = False

    async def _sync_unflushed(self) -> None:
        """Have everything synced that nobody waits for (`flush=os`), so that its files need not be kept open."""
        for partition in self._partitions:
            await self._pace.next()
            if partition.log.dirty and not partition.in_memory and self._may_work_at(partition):
                self._disk.commits.note(partition)

    async def _save_high_watermarks(self) -> None:
        """Of replicated partitions: where a leader begins that knows no better."""
        directory, has_moved = self._disk.directory, False
        for partition in self._partitions:
            await self._pace.next()
            if partition.is_replicated and not partition.in_memory and self._partitions.hosts(partition):
                has_moved |= directory.note_high_watermark(
                    partition.name, partition.topic_id, partition.high_watermark
                )
        if has_moved:
            await self._disk.high_watermarks.save()

    async def _write_snapshots(self) -> None:
        """For some of the partitions, where the last time ended: a snapshot that is due is in no hurry."""
        some = list(islice(self._snapshotting, PARTITIONS_PER_TURN))
        if len(some) < PARTITIONS_PER_TURN:
            self._snapshotting = iter(self._partitions)
        for partition in some:
            await self._pace.next()
            if self._may_work_at(partition):
                await self._write_snapshot(partition)

    async def _write_snapshot(self, partition: Hosted) -> None:
        """If one is due."""
        async with self._work.writing_snapshot(partition.log):
            if not self._may_work_at(partition):  # since it waited for another
                return
            snapshot = partition.log.maintenance.take_snapshot(self._clock.expiry_ms())
            if snapshot is None:
                return
            with self._work.beside(partition.log):
                try:
                    await self._pool.run(snapshot.run)
                except FileNotFoundError:
                    if self._partitions.hosts(partition):
                        raise
                else:
                    partition.log.maintenance.on_snapshot(snapshot)

    async def scrub(self) -> bool:
        """Verify the next stretch of closed segments; False when a round is over."""
        for partition in self._scrubbing:
            await self._pace.next()
            if self._work.is_wanted(partition.log):
                continue
            scrub = partition.log.maintenance.take_scrub(SCRUB_BYTES_PER_TICK)
            if scrub is None:
                continue
            with self._work.beside(partition.log):
                await self._pool.run(scrub.run)
                partition.log.maintenance.on_scrubbed(scrub)
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

    async def _tolerating_a_full_disk(self, work: Awaitable[None]) -> None:
        """What the journal says of a full disk anyway is not said again."""
        try:
            await work
        except StorageFailed as error:
            self._complain(str(error))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._complain(error.strerror or str(error))

    def _complain(self, reason: str) -> None:
        if not self._disk.room.is_full:
            _log.warning(
                "no room for a checkpoint, a snapshot or a compacted segment; it is tried again",
                reason=reason,
            )

    def _may_work_at(self, partition: Hosted) -> bool:
        return self._partitions.hosts(partition) and not self._work.is_wanted(partition.log)

    def _retention_interval_ms(self) -> int:
        return self._number("log.retention.check.interval.ms")

    def _compaction_rest_ms(self) -> int:
        return self._number("log.cleaner.backoff.ms")

    def _number(self, name: str) -> int:
        value = self._view.of_broker(name).parsed
        assert isinstance(value, int), "the catalogue says it is a number"
        return value
