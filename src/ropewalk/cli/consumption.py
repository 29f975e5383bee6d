"""Reading the asked-for range of a topic and printing it, until there is a reason to stop."""

from typing import BinaryIO

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.cli.offsets import Where, resolve_starts, resolve_stops
from ropewalk.cli.record_format import Printer
from ropewalk.client.client import Client
from ropewalk.client.consumer import Consumed, Consumer
from ropewalk.client.list_offsets import Isolation


class Range(Struct, frozen=True):
    """What to read. No `stop_at_ms` and no `count` means for ever."""

    partitions: list[int] | None
    start: Where
    stop_at_ms: int | None
    count: int | None
    exit_at_end: bool


class Consumption:
    def __init__(
        self,
        client: Client,
        topic: str,
        wanted: Range,
        printer: Printer,
        sink: BinaryIO,
        *,
        committed: bool = False,
    ) -> None:
        self._client = client
        self._topic = topic
        self._wanted = wanted
        self._printer = printer
        self._sink = sink
        self._isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED
        self._stops: dict[int, int] = {}
        self._printed_count = 0

    async def run(self) -> int:
        """How many records were printed. Each round of fetching is flushed, so that a pipe sees it at once."""
        consumer = await self._consumer()
        while self._drop_finished(consumer) and not self._has_enough():
            for consumed in await consumer.poll():
                self._print(consumed)
            self._sink.flush()
        return self._printed_count

    async def _consumer(self) -> Consumer:
        bounds = await resolve_starts(
            self._client, self._topic, self._wanted.partitions, self._wanted.start, isolation=self._isolation
        )
        if self._wanted.stop_at_ms is not None:
            chosen = [bound.partition for bound in bounds]
            self._stops = await resolve_stops(self._client, self._topic, chosen, self._wanted.stop_at_ms)
        if self._wanted.exit_at_end:
            for bound in bounds:
                self._stops[bound.partition] = min(bound.end, self._stops.get(bound.partition, bound.end))
        positions = {TopicPartition(self._topic, bound.partition): bound.offset for bound in bounds}
        return Consumer(self._client, positions, isolation=self._isolation)

    def _drop_finished(self, consumer: Consumer) -> bool:
        """Stop reading partitions that have reached their stop; whether any are left."""
        for partition, position in list(consumer.positions.items()):
            stop = self._stops.get(partition.partition)
            if stop is not None and position >= stop:
                del consumer.positions[partition]
        return bool(consumer.positions)

    def _has_enough(self) -> bool:
        return self._wanted.count is not None and self._printed_count >= self._wanted.count

    def _print(self, consumed: Consumed) -> None:
        stop = self._stops.get(consumed.partition.partition)
        for record in consumed.records:
            if self._has_enough() or (stop is not None and record.offset >= stop):
                return
            self._sink.write(self._printer(consumed.partition, record))
            self._printed_count += 1
