"""What this node carries, measured now and then and told to the controller with the next heartbeat.

What a reader could get wrong
    Rates are of the time between two measurements. A partition that came or changed its role in between has none yet.
    Only partitions that the node leads are told, and of those the busiest: whoever is not told of is quiet.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from msgspec import Struct

from ropewalk.base.limits import LOAD_MEASURED_MS, LOAD_PARTITIONS_TOLD_MAX, LOAD_SLICE_COUNT
from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.controller.load import NodeLoad, PartitionLoad
from ropewalk.runtime.steps import Pace

H = TypeVar("H")


class _Counts(Struct, frozen=True, gc=False):
    bytes_in: int
    bytes_out: int
    end_offset: int


class LoadMeter:
    def __init__(self, partitions: Partitions, vitals: Vitals, clock: Clock) -> None:
        self._partitions = partitions
        self._vitals = vitals
        self._clock = clock
        self._counts: dict[Partition, _Counts] = {}
        self._cpu_s: float | None = None
        self._measured_at_ms: float | None = None
        self._is_told = True
        self.latest = NodeLoad()

    async def run(self) -> None:
        while True:
            await self.measure()
            await asyncio.sleep(LOAD_MEASURED_MS / 1000)

    def take(self) -> NodeLoad | None:
        """The load, once for each measurement."""
        if self._is_told:
            return None
        self._is_told = True
        return self.latest

    async def measure(self) -> None:
        await self._vitals.refresh()
        now_ms = self._clock.monotonic_ms()
        usage = self._vitals.usage
        cpu_s = usage.cpu_user_s + usage.cpu_system_s
        elapsed_ms = 0.0 if self._measured_at_ms is None else now_ms - self._measured_at_ms
        partitions = await self._rates(elapsed_ms)
        if elapsed_ms > 0 and self._cpu_s is not None:
            used_bytes = 0
            async for hosted in _in_slices(self._partitions):
                used_bytes += hosted.log.size_bytes
            self.latest = NodeLoad(
                cpu_permille=round((cpu_s - self._cpu_s) * 1_000_000 / elapsed_ms),
                disk_used_bytes=used_bytes,
                disk_total_bytes=used_bytes + (self._vitals.disk_free_bytes or 0),
                partitions=partitions,
            )
            self._is_told = False
        self._cpu_s, self._measured_at_ms = cpu_s, now_ms

    async def _rates(self, elapsed_ms: float) -> tuple[PartitionLoad, ...]:
        """Since the last measurement, per second."""
        before, self._counts = self._counts, {}
        busy: list[PartitionLoad] = []
        async for partition in _in_slices(self._partitions.all_led()):
            counts = _Counts(partition.appended_bytes, partition.fetched_bytes, partition.log.end_offset)
            self._counts[partition] = counts
            former = before.get(partition)
            if former is None or former == counts or elapsed_ms <= 0:
                continue
            busy.append(
                PartitionLoad(
                    topic_id=partition.topic_id,
                    index=partition.name.partition,
                    bytes_in=_per_second(counts.bytes_in - former.bytes_in, elapsed_ms),
                    bytes_out=_per_second(counts.bytes_out - former.bytes_out, elapsed_ms),
                    records_in=_per_second(counts.end_offset - former.end_offset, elapsed_ms),
                )
            )
        busy.sort(key=lambda load: load.bytes_in + load.bytes_out, reverse=True)
        return tuple(busy[:LOAD_PARTITIONS_TOLD_MAX])


async def _in_slices(hosted: Iterable[H]) -> AsyncIterator[H]:
    """All of them, with everybody else having a turn now and then: a node may have tens of thousands."""
    pace = Pace(LOAD_SLICE_COUNT)
    for each in hosted:
        await pace.next()
        yield each


def _per_second(count: int, elapsed_ms: float) -> int:
    return round(max(0, count) * 1000 / elapsed_ms)
