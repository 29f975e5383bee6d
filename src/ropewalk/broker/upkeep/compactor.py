"""Compacts the partitions of a node, one at a time and with a budget, so that nobody notices.

What a reader could get wrong
    A pass goes on over many steps. The partition lives on meanwhile: it may be written to, trimmed or deleted. Who wants to
    cut its log back waits for the pass to be given up, which happens at its next step.
    Once readers have been given a compacted segment, its file must get its name. If the disk has no room for that, it
    is tried again before anything else.
"""

from collections.abc import Iterable, Iterator

import structlog
from msgspec import Struct

from ropewalk.base.limits import COMPACTION_BYTES_PER_TICK
from ropewalk.base.ports import Pool
from ropewalk.broker.partitions.believed_clock import BelievedClock
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.log_work import LogWork
from ropewalk.log.compaction import Compaction
from ropewalk.log.rewrite import Replacement
from ropewalk.runtime.steps import Pace

_log = structlog.get_logger()


class _Pass(Struct):
    partition: Hosted
    compaction: Compaction
    size_bytes_before: int
    installed: Replacement | None = None
    """What readers have been given already, and whose file has yet to get its name."""


class Compactor:
    def __init__(
        self, partitions: Iterable[Hosted], work: LogWork, pool: Pool, clock: BelievedClock, pace: Pace
    ) -> None:
        self._partitions = partitions
        self._work = work
        self._pool = pool
        self._clock = clock
        self._pace = pace
        self._candidates: Iterator[Hosted] = iter(partitions)
        self._pass: _Pass | None = None
        self.pass_count = 0
        self.removed_count = 0
        self.spent_bytes = 0

    async def step(self) -> bool:
        """Go on for one tick's budget; False when no partition has anything to compact.

        Raises the disk's `OSError`, after which the next step goes on as well as it can.
        """
        budget_bytes = COMPACTION_BYTES_PER_TICK
        while budget_bytes > 0:
            if self._pass is None:
                self._pass = await self._begin()
                if self._pass is None:
                    return False
            spent_bytes = await self._go_on(self._pass)
            self.spent_bytes += spent_bytes
            budget_bytes -= spent_bytes
        return True

    async def _begin(self) -> _Pass | None:
        """A pass over the next partition that needs one; None when all have been asked."""
        for partition in self._candidates:
            await self._pace.next()
            log, now_ms = partition.log, self._clock.expiry_ms()
            if partition.is_over or self._work.is_wanted(log):
                continue  # what a role that has ended knows to be committed may have been cut since
            if partition.is_copied_anew:
                continue  # it might never come to an end
            compaction = log.maintenance.take_compaction(
                limit_offset=partition.last_stable_offset, now_ms=now_ms
            )
            if compaction is None:
                continue
            # Snapshots that speak of compacted segments go with them. This one spares a crash the reading of it all.
            self._work.begin(log)
            async with self._work.writing_snapshot(log):
                snapshot = log.maintenance.take_snapshot(now_ms, force=True)
                if snapshot is not None:
                    try:
                        await self._pool.run(snapshot.run)
                    except FileNotFoundError:  # the partition was removed meanwhile
                        self._work.end(log)
                        continue
                    except OSError:
                        self._work.end(log)
                        raise
                    log.maintenance.on_snapshot(snapshot)
            return _Pass(partition, compaction, log.size_bytes)
        self._candidates = iter(self._partitions)
        return None

    async def _go_on(self, current: _Pass) -> int:
        """One run of a pass; answers what it took of the budget."""
        compaction, spent_bytes = current.compaction, 0
        log = current.partition.log
        # One that was deleted leaves its paths to whatever comes under the same name.
        if log.is_forgotten or (current.installed is None and self._work.is_wanted(log)):
            await self._abandon(current)
            return spent_bytes
        if current.installed is None:
            try:
                spent_bytes = await self._pool.run(compaction.run, COMPACTION_BYTES_PER_TICK)
            finally:
                self._end_if_over(current)
            replacement = compaction.replacement
            if replacement is not None:
                if current.partition.log.maintenance.install(replacement):
                    compaction.replacement, current.installed = None, replacement
                else:
                    await self._abandon(current)
        if current.installed is not None:
            await self._name(current, current.installed)
        return spent_bytes

    async def _name(self, current: _Pass, replacement: Replacement) -> None:
        try:
            await self._pool.run(replacement.run)
        except FileNotFoundError:  # the topic was deleted meanwhile
            await self._abandon(current)
            return
        current.partition.log.maintenance.on_installed(replacement)
        current.installed = None

    async def _abandon(self, current: _Pass) -> None:
        await self._pool.run(current.compaction.abandon)
        self._end_if_over(current)

    def _end_if_over(self, current: _Pass) -> None:
        if not current.compaction.is_over:
            return
        self._pass = None
        partition, compaction = current.partition, current.compaction
        partition.log.maintenance.on_compacted(compaction)
        self._work.end(partition.log)
        if compaction.damaged is not None:
            _log.error(
                "partition is damaged: it is not compacted and reads of this range are refused",
                partition=str(partition.name),
                start_offset=compaction.damaged.start_offset,
                end_offset=compaction.damaged.end_offset,
            )
        elif compaction.trouble:
            _log.error("partition is not compacted", partition=str(partition.name), reason=compaction.trouble)
        elif compaction.is_complete:
            self.pass_count += 1
            self.removed_count += compaction.removed_count
            _log.info(
                "partition compacted",
                partition=str(partition.name),
                end_offset=compaction.compacted_offset,
                removed_count=compaction.removed_count,
                size_bytes_before=current.size_bytes_before,
                size_bytes=partition.log.size_bytes,
            )
