"""Takes messages that are moved into a partition that is led here, once each, by the identity under which they come.

What a reader could get wrong
    Whoever brings them may bring them again, in this life or in another one. How many have arrived is known by the sequence that the log remembers of their
    producer, so what is there is not appended again, and its commit is waited for all the same.
"""

from collections.abc import Callable

from ropewalk.base.errors import BatchExceedsSegment, BatchTooLarge, OutOfOrderSequence, ProducerFenced
from ropewalk.base.limits import QUEUE_BATCH_BYTES
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.partition import Partition, Prepared
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.queues.dead_letters import batches_of
from ropewalk.queues.messages import Arrival, Arrived, Shipment
from ropewalk.records.batch import HEADER_BYTES, SEQUENCE_MAX, decode_header

_REFUSED_FOR_GOOD = (BatchExceedsSegment, BatchTooLarge)
"""Nothing is in the log, and nothing will be."""


class Arrivals:
    def __init__(self, partitions: Partitions, commit_timeout_ms: Callable[[], int]) -> None:
        self._partitions = partitions
        self._commit_timeout_ms = commit_timeout_ms

    async def take(self, shipment: Shipment) -> Arrived:
        """Raises where nobody can know: the same may be brought again. May be awaited where there is no task."""
        target = self._partitions.find_by_id(shipment.topic_id, shipment.partition)
        arrival, arrived_count = Arrival.ARRIVED, _arrived_count(target, shipment)
        if arrived_count < shipment.first_index + len(shipment.entries):
            try:
                self._append(target, shipment, max(arrived_count - shipment.first_index, 0))
            except _REFUSED_FOR_GOOD:
                arrival = Arrival.REFUSED
            except (OutOfOrderSequence, ProducerFenced):
                return Arrived(Arrival.PRODUCER_UNKNOWN, 0)
            arrived_count = _arrived_count(target, shipment)
        committed = target.expect(target.log.end_offset, self._commit_timeout_ms())
        if committed is not None:
            await committed
        return Arrived(arrival, arrived_count)

    def _append(self, target: Partition, shipment: Shipment, skipped_count: int) -> None:
        for batch in batches_of(
            shipment.entries[skipped_count:],
            producer_id=shipment.producer_id,
            producer_epoch=shipment.producer_epoch,
            sequence=(shipment.sequence + shipment.first_index + skipped_count) & SEQUENCE_MAX,
            bytes_max=min(QUEUE_BATCH_BYTES, target.log.settings.segment_bytes - HEADER_BYTES),
        ):
            view = memoryview(batch)
            target.append(Prepared(view, decode_header(view)), Acks.ALL, 0)


def _arrived_count(target: Partition, shipment: Shipment) -> int:
    """How many messages of the move the target has, committed or not: the first ones."""
    last = target.log.producers.last_sequence_of(shipment.producer_id, shipment.producer_epoch)
    if last is None:
        return 0
    count = (last - shipment.sequence + 1) & SEQUENCE_MAX
    return count if count <= shipment.message_count else 0
