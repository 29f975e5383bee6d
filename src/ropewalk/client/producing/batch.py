"""A batch on its way, and the handle by which one record of it is followed.

What a reader could get wrong
    Nothing is done per record when a batch is acknowledged: a `Delivery` knows its batch and its place in it, and works out
    the offset when it is asked.
"""

import asyncio
from collections.abc import Callable, Generator

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.produce import Produced
from ropewalk.client.errors import DeliveryFailed, Misuse
from ropewalk.records.packing import Entry


class Acknowledged(Struct, frozen=True, gc=False):
    """Where a record is. `offset` is -1 where nobody was asked (acks=0), or where the broker no longer knew."""

    topic: str
    partition: int
    offset: int
    append_time_ms: int | None = None
    """When the broker took it, on topics that keep that time."""


class Batch:
    """Records of one partition, in order. Open until it is full or taken; then its bytes do not change."""

    __slots__ = (
        "attempt_count", "deadline_ms", "encoded", "entries", "identity", "is_closed", "may_be_there", "number", "opened_at_ms",
        "outcome", "partition", "record_count", "sent_at_ms", "sequence", "settled", "size_bytes",
    )  # fmt: skip

    def __init__(
        self, partition: TopicPartition, *, number: int, opened_at_ms: float, deadline_ms: float
    ) -> None:
        self.partition = partition
        self.number = number
        """Later batches have higher ones."""
        self.opened_at_ms = opened_at_ms
        self.deadline_ms = deadline_ms
        self.entries: list[Entry] = []
        self.record_count = 0
        self.size_bytes = 0
        self.is_closed = False
        self.encoded: bytearray | memoryview | None = None
        self.identity = (-1, -1)
        """Producer id and epoch under which its sequence was given."""
        self.sequence = -1
        self.attempt_count = 0
        self.sent_at_ms = 0.0
        self.may_be_there = False
        """Whether an attempt has ended without telling what became of it."""
        self.outcome: Produced | RopewalkError | None = None
        self.settled: asyncio.Future[None] | None = None

    def add(self, entry: Entry, size_bytes: int) -> int:
        """The record's place in the batch."""
        self.entries.append(entry)
        self.size_bytes += size_bytes
        place = self.record_count
        self.record_count = place + 1
        return place

    def settle(self, outcome: Produced | RopewalkError) -> None:
        assert self.outcome is None, "a batch has one outcome"
        self.outcome = outcome
        self.entries = []
        self.encoded = None
        if self.settled is not None and not self.settled.done():
            self.settled.set_result(None)

    def fail(self, cause: RopewalkError) -> DeliveryFailed:
        error = DeliveryFailed(str(self.partition), self.record_count, cause, is_unknown=self.may_be_there)
        self.settle(error)
        return error

    async def wait(self) -> None:
        if self.outcome is None:
            if self.settled is None:
                self.settled = asyncio.get_running_loop().create_future()
            await asyncio.shield(self.settled)


BlockingWait = Callable[["Delivery", float | None], None]


class Delivery:
    """What becomes of one record: `await` it on the loop that sends it, and get an `Acknowledged` or the error.

    Where a blocking producer made it, `result` waits.
    """

    __slots__ = ("_batch", "_error", "_index", "_placed", "_wait")

    def __init__(self) -> None:
        self._batch: Batch | None = None
        self._index = 0
        self._error: RopewalkError | None = None
        self._placed: asyncio.Future[None] | None = None
        self._wait: BlockingWait | None = None

    def waits_in(self, wait: BlockingWait) -> None:
        """Have `result` wait by this."""
        self._wait = wait

    def place(self, batch: Batch, index: int) -> None:
        """Its record has a partition and a place there."""
        self._batch = batch
        self._index = index
        if self._placed is not None:
            self._placed.set_result(None)

    def refuse(self, error: RopewalkError) -> None:
        """Its record will never be in a batch."""
        self._error = error
        if self._placed is not None:
            self._placed.set_result(None)

    @property
    def done(self) -> bool:
        return self._error is not None or (self._batch is not None and self._batch.outcome is not None)

    def result(self, timeout_s: float | None = None) -> Acknowledged:
        """Where the record is; raises what went wrong with it, and `TimedOut` while it is still on its way."""
        if self._wait is not None and not self.done:
            self._wait(self, timeout_s)
        if self._error is not None:
            raise self._error
        batch = self._batch
        outcome = None if batch is None else batch.outcome
        if batch is None or outcome is None:
            raise Misuse("the record is still on its way; wait for its delivery first")
        if isinstance(outcome, RopewalkError):
            raise outcome
        offset = outcome.base_offset
        return Acknowledged(
            batch.partition.topic,
            batch.partition.partition,
            offset + self._index if offset >= 0 else -1,
            outcome.log_append_time_ms if outcome.log_append_time_ms >= 0 else None,
        )

    async def wait(self) -> Acknowledged:
        await self.settled()
        return self.result()

    async def settled(self) -> None:
        """Return when it is `done`, well or not."""
        if self._batch is None and self._error is None:
            if self._placed is None:
                self._placed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._placed)
        if self._batch is not None:
            await self._batch.wait()

    def __await__(self) -> Generator[object, None, Acknowledged]:
        return self.wait().__await__()
