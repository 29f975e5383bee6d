"""A log in which every event has a key, and a later one of the same key replaces it: the form of Kafka's own internal topics."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from ropewalk.base.ids import Offset
from ropewalk.base.ports import Pool
from ropewalk.broker.hosting.event_batches import Enrolment, batches
from ropewalk.broker.hosting.replay import Decode, Passage, replay
from ropewalk.broker.partitions.partition import Partition, Prepared

E = TypeVar("E")


class Keyed(Struct, Generic[E], frozen=True):
    encode: Callable[[E], tuple[bytes, bytes | None]]
    """Key and value of the record; a later record of the same key replaces it."""
    decode: Decode[E]
    """None for a record that is not an event of this kind; raises `InvalidRecord` for one that cannot be read."""

    def batches(
        self, events: Sequence[E], *, now_ms: int, enrolment: Enrolment | None = None
    ) -> Iterator[Prepared]:
        return batches(events, self.encode, now_ms=now_ms, enrolment=enrolment)

    def replay(self, partition: Partition, *, end_offset: Offset, pool: Pool) -> AsyncIterator[Passage[E]]:
        return replay(partition, self.decode, end_offset=end_offset, pool=pool)
