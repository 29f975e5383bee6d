"""How old what groups would read next is: the timestamp at the committed offset, looked up in the background.

What it costs
    Where nothing is left to read the age is 0, and nothing is looked up. Where a group has not committed since, its next record is the
    same, and only time goes on. What is left are partitions whose group is behind and has moved: of these `LAG_AGE_LOOKUPS_MAX` are looked
    up in a round, those first that have waited longest. Each reads one batch, as a consumer would: of the page cache where it is there
    (most groups are a moment behind), else in the disk pool.

What a reader could get wrong
    A partition that waits for its turn is told by the record of before, which is older: an age may be too large for a while.
    A partition that is not on this node has no age here, as it has no lag.
"""

import asyncio
from collections.abc import Iterator
from math import inf

from msgspec import Struct

from ropewalk.base import metrics
from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import Offset
from ropewalk.base.limits import LAG_AGE_LOOKUPS_MAX, LAG_AGE_ROUND_MS, SCRAPE_SLICE_COUNT
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.watching.group_figures import GroupSamples
from ropewalk.log.log import Log
from ropewalk.records.batch import max_timestamp
from ropewalk.runtime.steps import Pace


class _Next(Struct):
    """What a group would read next of a partition."""

    offset: Offset
    timestamp: int | None = None
    """None: it is not known."""
    timestamp_of: Offset | None = None
    """The offset that was looked up; an earlier one where it is time for another look."""
    looked_up_at_ms: float = -inf


class LagAges:
    def __init__(self, groups: GroupSamples, partitions: Partitions, pool: Pool, clock: Clock) -> None:
        self._groups = groups
        self._partitions = partitions
        self._pool = pool
        self._clock = clock
        self._next: dict[tuple[str, str, int], _Next] = {}

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LAG_AGE_ROUND_MS / 1000)

    async def look(self) -> None:
        """One round."""
        pace, seen_count = Pace(1), 0
        known, self._next = self._next, {}
        waiting: list[tuple[float, tuple[str, str, int], Hosted]] = []
        for sample in self._groups.samples():
            for topic, index, offset in sample.offsets:
                key = (sample.group_id, topic, index)
                seen_count += 1
                if seen_count % SCRAPE_SLICE_COUNT == 0:
                    await pace.next()
                partition = self._behind(topic, index, offset)
                if partition is None:
                    continue
                there = self._next[key] = known.get(key) or _Next(offset)
                there.offset = max(offset, partition.log.start_offset)
                if there.timestamp_of is not None and there.offset < there.timestamp_of:
                    there.timestamp = None  # the group was set back: what it read before says nothing of that
                if there.timestamp_of != there.offset:
                    waiting.append((there.looked_up_at_ms, key, partition))
        waiting.sort(key=lambda each: each[:2])
        for _, key, partition in waiting[:LAG_AGE_LOOKUPS_MAX]:
            await self._look_up(self._next[key], partition)

    def collect(self, sheet: Sheet) -> Iterator[None]:
        now_ms = self._clock.now_ms()
        row_count = 0
        for sample in self._groups.samples():
            ages_s: dict[str, float] = {}
            for topic, index, offset in sample.offsets:
                age_s = self._age_s(sample.group_id, topic, index, offset, now_ms)
                if age_s is not None:
                    ages_s[topic] = max(ages_s.get(topic, 0.0), age_s)
                row_count += 1
                if row_count % SCRAPE_SLICE_COUNT == 0:
                    yield
            for topic, age_s in sorted(ages_s.items()):
                sheet.add(metrics.GROUP_LAG_SECONDS, age_s, sample.group_id, topic)
        yield

    def _age_s(self, group_id: str, topic: str, index: int, offset: Offset, now_ms: int) -> float | None:
        try:
            partition = self._partitions.find_copy(topic, index)
        except RopewalkError:
            return None
        if offset >= partition.high_watermark:
            return 0.0
        there = self._next.get((group_id, topic, index))
        if there is None or there.timestamp is None:
            return None
        return max(0, now_ms - there.timestamp) / 1000

    def _behind(self, topic: str, index: int, offset: Offset) -> Hosted | None:
        """The partition, if it is here and has something after `offset`."""
        try:
            partition = self._partitions.find_copy(topic, index)
        except RopewalkError:
            return None
        return partition if offset < partition.high_watermark else None

    async def _look_up(self, there: _Next, partition: Hosted) -> None:
        offset = there.offset
        there.looked_up_at_ms = self._clock.monotonic_ms()
        try:
            there.timestamp = await self._timestamp_at(partition.log, offset, partition.high_watermark)
        except (RopewalkError, OSError):  # deleted, damaged or cut meanwhile: then it is not known
            there.timestamp = None
        else:
            there.timestamp_of = offset

    async def _timestamp_at(self, log: Log, offset: Offset, high_watermark: Offset) -> int | None:
        """Of the batch in which an offset lies; None where nothing is left to read by now."""
        span = log.locate(offset, limit_offset=high_watermark, bytes_max=1)
        if span is None:
            return None
        records = span.read_cached()
        if records is None:
            records = await self._pool.run(span.read)
            log.on_read(span)
        return max_timestamp(records) if records else None
