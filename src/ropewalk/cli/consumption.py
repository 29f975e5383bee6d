"""Reading the asked-for range of a topic and printing it, until there is a reason to stop.

What a reader could get wrong
    Each leader's partitions are read by themselves: one that hangs keeps nobody from the records of the others. Partitions whose leader does not
    answer at the beginning are left out and named; who waits for more reads them from when they answer.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import BinaryIO, Final

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.cli.failure import Failed
from ropewalk.cli.offsets import resolve_starts
from ropewalk.cli.output import warn
from ropewalk.cli.record_format import Printer
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import Isolation, OffsetQuery
from ropewalk.client.consumer import Consumed, Consumer
from ropewalk.views.answering import begin_with_any, deadline_ms
from ropewalk.views.offsets import Where, resolve_stops
from ropewalk.views.record_filters import Filter

_ASK_AGAIN_S: Final = 1.0


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
        wanted_by: Filter | None = None,
    ) -> None:
        """`wanted_by` chooses records; those that it does not want are neither printed nor counted."""
        self._client = client
        self._topic = topic
        self._wanted = wanted
        self._printer = printer
        self._sink = sink
        self._isolation = Isolation.READ_COMMITTED if committed else Isolation.READ_UNCOMMITTED
        self._stops: dict[int, int] = {}
        self._printed_count = 0
        self._wanted_by = wanted_by
        self.read_count = 0

    async def run(self) -> int:
        """How many records were printed. Each round of fetching is flushed, so that a pipe sees it at once."""
        await begin_with_any(self._client)
        leaders = {each.index: each.leader for each in (await self._client.topic(self._topic)).partitions}
        asked = self._wanted.partitions if self._wanted.partitions is not None else sorted(leaders)
        answering = await self._answering(asked)
        silent = [index for index in asked if index in leaders and index not in answering]
        if silent:
            warn(
                f"the leaders of partitions {_listed(silent)} of {self._topic} do not answer; they are left out"
            )
        consumer = await self._consumer([index for index in asked if index not in silent])
        ends = self._wanted.exit_at_end or self._wanted.stop_at_ms is not None
        await self._read_all(consumer, leaders, later=[] if ends else silent)
        if silent and not self._has_enough():
            raise Failed(
                f"partitions {_listed(silent)} of {self._topic} were not read: their leader does not answer"
            )
        return self._printed_count

    async def _answering(self, partitions: Sequence[int]) -> set[int]:
        """Those whose leaders answer in time."""
        listed = await self._client.list_known_offsets(
            {TopicPartition(self._topic, index): int(OffsetQuery.LATEST) for index in partitions},
            deadline_ms=deadline_ms(self._client),
            without_the_silent=True,
        )
        return {each.partition for each in listed}

    async def _read_all(self, consumer: Consumer, leaders: Mapping[int, int], *, later: list[int]) -> None:
        """By leader, as they were at the beginning; a partition that moves is read on where it is. `later`: those whose leaders are silent."""
        parts: dict[int, dict[TopicPartition, int]] = {}
        for partition, position in consumer.positions.items():
            parts.setdefault(leaders[partition.partition], {})[partition] = position
        readers = [
            self._read(Consumer(self._client, part, isolation=self._isolation)) for part in parts.values()
        ]
        readers += [self._read_later(later)] if later else []
        tasks: list[asyncio.Task[None]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [group.create_task(self._until_enough(reader, tasks)) for reader in readers]
        except BaseExceptionGroup as failures:
            refused = failures.subgroup((RopewalkError, OSError))
            if refused is None:
                raise
            raise _first(refused) from None

    async def _until_enough(
        self, reader: Coroutine[object, object, None], tasks: "list[asyncio.Task[None]]"
    ) -> None:
        await reader
        if self._has_enough():
            for task in tasks:
                if task is not asyncio.current_task():
                    task.cancel()

    async def _read_later(self, silent: list[int]) -> None:
        answering = await self._answering(silent)
        while not answering:
            await asyncio.sleep(_ASK_AGAIN_S)
            answering = await self._answering(silent)
        left = [index for index in silent if index not in answering]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read(await self._consumer(sorted(answering))))
            if left:
                group.create_task(self._read_later(left))

    async def _read(self, consumer: Consumer) -> None:
        while self._drop_finished(consumer) and not self._has_enough():
            for consumed in await consumer.poll():
                self._print(consumed)
            self._sink.flush()

    async def _consumer(self, partitions: list[int]) -> Consumer:
        bounds = await resolve_starts(
            self._client, self._topic, partitions, self._wanted.start, isolation=self._isolation
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
            self.read_count += 1
            if self._wanted_by is not None and not self._wanted_by(record):
                continue
            self._sink.write(self._printer(consumed.partition, record))
            self._printed_count += 1


def _listed(partitions: Sequence[int]) -> str:
    return ", ".join(map(str, partitions))


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    failure = failures.exceptions[0]
    return _first(failure) if isinstance(failure, BaseExceptionGroup) else failure
