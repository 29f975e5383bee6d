"""What waits to be sent, what is on its way, and what is sent again. A core: it decides, the sender acts.

Invariants
    Batches of one partition are appended in the order in which they were filled. Up to `in_flight_max` of an idempotent
    producer are on their way at once; as soon as one comes back to be repeated, none of the partition is sent until all
    have come back, and then one at a time until what was sent before has arrived.
    A batch that may be in the log is never given another epoch or sequence: the earlier attempt may still arrive, however late,
    and nobody could tell the two apart. Where its sequence is lost it fails, as unknown.
    A producer without sequences has one batch of a partition on its way: two could change places. So has one that the
    broker does not know yet: of a stranger it takes any sequence for the first, and the batch before would be appended behind.

What a reader could get wrong
    When a batch is given up, the sequences behind it have a gap, if it never arrived. Nobody guesses: the next batch is sent
    with its sequence, and if the broker says that one is missing, the partition goes over to another epoch, in which
    sequences begin at 0. Only batches that certainly are not there go along. Whatever of the former epoch still arrives later
    is refused by the broker.
    Epochs are per partition here, as they are at the broker. Transactions are different: there the coordinator gives out
    epochs, and a gap ends the transaction.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from ropewalk.base.errors import RopewalkError, TimedOut
from ropewalk.base.ids import ProducerEpoch, ProducerId, TopicId, TopicPartition
from ropewalk.client.calls.produce import Produced
from ropewalk.client.errors import RemoteError, is_definite, is_retriable, may_be_appended
from ropewalk.client.producing.batch import Batch
from ropewalk.client.producing.settings import ProducerSettings
from ropewalk.records.batch import SEQUENCE_MAX, SEQUENCE_NONE
from ropewalk.records.packing import Entry, mark_transactional, pack, restamp
from ropewalk.wire.error_code import ErrorCode

Identity = tuple[ProducerId, ProducerEpoch]

EPOCH_MAX: Final = 32_767
"""The last that 16 bits can say; beyond it another producer id is needed."""

_LATENCY_SHARE: Final = 0.2
"""What the newest answer counts for in a partition's latency."""

_SEQUENCE_LOST: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


class PartitionQueue:
    """The batches of one partition."""

    __slots__ = (
        "identity", "in_flight", "known_as", "latency_ms", "not_before_ms", "partition", "queued_bytes", "returned",
        "sequence", "topic_id", "waiting",
    )  # fmt: skip

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.waiting: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.returned: list[Batch] = []
        """Came back to be repeated, while others are still on their way."""
        self.identity: Identity | None = None
        self.known_as: ProducerId | None = None
        """The id under which the broker has acknowledged something here."""
        self.topic_id: TopicId | None = None
        """The topic that something was last sent to: there may be another of its name later."""
        self.sequence = 0
        self.not_before_ms = 0.0
        self.queued_bytes = 0
        self.latency_ms = 0.0

    @property
    def is_stranger(self) -> bool:
        """Whether the broker may never have heard of this producer."""
        return self.identity is not None and self.known_as != self.identity[0]

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.in_flight and not self.returned


class Outbox:
    def __init__(self, settings: ProducerSettings, on_settled: Callable[[Batch], None]) -> None:
        self._settings = settings
        self._on_settled = on_settled
        self._is_idempotent = settings.is_idempotent
        self._is_transactional = settings.transactional_id is not None
        self._in_flight_max = settings.max_in_flight if settings.is_idempotent else 1
        self._codec = settings.codec
        self._batch_bytes = settings.batch_size
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._active: dict[TopicPartition, PartitionQueue] = {}
        self._batch_count = 0
        self.held_bytes = 0
        self.identity: Identity | None = None
        """None until the cluster has given one; a producer that needs none never waits for it."""
        self.ended_by: RopewalkError | None = None
        """Why nothing is tried again, while that is so: the transaction is lost."""
        self.flushing = 0
        """How many wait for everything to be sent: then no batch waits for more records."""

    @property
    def is_empty(self) -> bool:
        return not self._active

    @property
    def wants_identity(self) -> bool:
        return self._is_idempotent and self.identity is None

    def queue(self, partition: TopicPartition) -> PartitionQueue:
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = PartitionQueue(partition)
        return queue

    def queues(self) -> list[PartitionQueue]:
        """Those that have something to send or on its way."""
        return list(self._active.values())

    def add(
        self, queue: PartitionQueue, entry: Entry, size_bytes: int, now_ms: float
    ) -> tuple[Batch, int, bool]:
        """The batch, the record's place in it, and whether the sender should have a look."""
        waiting = queue.waiting
        batch = waiting[-1] if waiting else None
        is_news = False
        if batch is None or batch.is_closed or batch.size_bytes + size_bytes > self._batch_bytes:
            if batch is not None:
                batch.is_closed = True
            batch = self._begin(queue, now_ms)
            is_news = True
        index = batch.add(entry, size_bytes)
        self.held_bytes += size_bytes
        queue.queued_bytes += size_bytes
        return batch, index, is_news

    def add_encoded(
        self, queue: PartitionQueue, encoded: bytearray | memoryview, record_count: int, now_ms: float
    ) -> Batch:
        """A batch that somebody else has packed; its producer id and sequence are written into it."""
        if queue.waiting:
            queue.waiting[-1].is_closed = True
        if self._is_transactional:
            mark_transactional(encoded)
        batch = self._begin(queue, now_ms)
        batch.is_closed = True
        batch.encoded = encoded
        batch.record_count = record_count
        batch.size_bytes = len(encoded)
        self.held_bytes += batch.size_bytes
        queue.queued_bytes += batch.size_bytes
        return batch

    def ready(self, now_ms: float) -> Iterator[PartitionQueue]:
        """The queues of which a batch may be sent now."""
        for queue in self._active.values():
            if self.may_send(queue, now_ms):
                yield queue

    def may_send(self, queue: PartitionQueue, now_ms: float) -> bool:
        waiting, in_flight = queue.waiting, queue.in_flight
        if not waiting or queue.returned or now_ms < queue.not_before_ms:
            return False
        first = waiting[0]
        if in_flight and (
            first.attempt_count
            or in_flight[-1].attempt_count > 1
            or len(in_flight) >= self._in_flight_max
            or queue.is_stranger
        ):
            return False
        return (
            first.is_closed
            or len(waiting) > 1
            or self.flushing > 0
            or now_ms >= first.opened_at_ms + self._settings.linger_ms
        )

    def on_topic(self, queue: PartitionQueue, topic_id: TopicId) -> None:
        """What is sent next goes to this topic. One that was made anew knows nothing of what was sent to the former."""
        if queue.topic_id != topic_id:
            queue.topic_id = topic_id
            queue.known_as = None

    def next_at_ms(self) -> float | None:
        """When to look again though nothing happens: a batch has lingered, a pause is over, a deadline has come."""
        soonest: float | None = None
        for queue in self._active.values():
            if not queue.waiting:
                continue
            first = queue.waiting[0]
            at_ms = first.deadline_ms
            if not queue.returned and not queue.in_flight:
                lingered_ms = (
                    first.opened_at_ms if first.is_closed else first.opened_at_ms + self._settings.linger_ms
                )
                at_ms = min(at_ms, max(lingered_ms, queue.not_before_ms))
            soonest = at_ms if soonest is None else min(soonest, at_ms)
        return soonest

    def take(self, queue: PartitionQueue, now_ms: float) -> Batch:
        """The next batch, with its bytes; it counts as on its way."""
        batch = queue.waiting.popleft()
        batch.is_closed = True
        batch.attempt_count += 1
        batch.sent_at_ms = now_ms
        queue.in_flight.append(batch)
        if self._is_idempotent:
            self._number(queue, batch)
        elif batch.encoded is None:
            batch.encoded = pack(batch.entries, codec=self._codec)
        batch.entries = []
        return batch

    def on_acknowledged(self, batch: Batch, produced: Produced, now_ms: float) -> None:
        queue = self._queues[batch.partition]
        queue.in_flight.remove(batch)
        if queue.identity is not None:
            queue.known_as = queue.identity[0]
        elapsed_ms = now_ms - batch.sent_at_ms
        queue.latency_ms += _LATENCY_SHARE * (elapsed_ms - queue.latency_ms)
        self._settle(queue, batch, produced)
        self._gather(queue)

    def on_failure(self, batch: Batch, error: RopewalkError, now_ms: float, pause_ms: float) -> None:
        """An attempt came to nothing, as far as anybody knows: it will be repeated, or the batch is given up."""
        queue = self._queues[batch.partition]
        is_first = queue.in_flight[0] is batch and not queue.returned
        queue.in_flight.remove(batch)
        code = error.code if isinstance(error, RemoteError) else None
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._settle(queue, batch, Produced(-1))  # it is there; where exactly, the broker has forgotten
        elif self._may_repeat(batch, error, code, is_first, now_ms):
            queue.returned.append(batch)
            if code in _SEQUENCE_LOST:
                if is_first:
                    self._begin_epoch(queue)
            elif may_be_appended(error):
                batch.may_be_there = True
            queue.not_before_ms = now_ms + pause_ms
        else:
            batch.may_be_there = batch.may_be_there or may_be_appended(error)
            self._give_up(queue, batch, error)
        self._gather(queue)

    def expire(self, now_ms: float) -> None:
        """Give up what has waited for too long."""
        for queue in list(self._active.values()):
            while queue.waiting and queue.waiting[0].deadline_ms <= now_ms:
                batch = queue.waiting.popleft()
                allowed_ms = self._settings.delivery_timeout_ms
                self._give_up(queue, batch, TimedOut(f"not delivered within {allowed_ms} ms"))

    def give_up_all(self, error: RopewalkError) -> None:
        """Of everything that is not on its way."""
        for queue in list(self._active.values()):
            for batch in [*queue.returned, *queue.waiting]:
                self._give_up(queue, batch, error)
            queue.returned = []
            queue.waiting.clear()
            self._retire(queue)

    def begin_epoch(self, identity: Identity) -> None:
        """From here on all sequences begin at 0, in an epoch that the coordinator gave. Nothing may be on its way."""
        assert self.is_empty, "an epoch ended with batches in it"
        self.identity = identity
        for queue in self._queues.values():
            queue.identity = identity
            queue.sequence = 0

    def unsettled(self) -> list[Batch]:
        return [
            batch
            for queue in self._active.values()
            for batch in (*queue.in_flight, *queue.returned, *queue.waiting)
        ]

    def _begin(self, queue: PartitionQueue, now_ms: float) -> Batch:
        batch = Batch(
            queue.partition,
            number=self._batch_count,
            opened_at_ms=now_ms,
            deadline_ms=now_ms + self._settings.delivery_timeout_ms,
        )
        self._batch_count += 1
        queue.waiting.append(batch)
        self._active[queue.partition] = queue
        return batch

    def _may_repeat(
        self, batch: Batch, error: RopewalkError, code: ErrorCode | None, is_first: bool, now_ms: float
    ) -> bool:
        if now_ms >= batch.deadline_ms or self.ended_by is not None:
            return False
        if code in _SEQUENCE_LOST and self._is_idempotent:
            if is_first and batch.may_be_there:
                return False
            # Behind a batch that comes back the broker must miss a sequence: that says nothing about this one.
            return not self._is_transactional or (
                code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not is_first
            )
        if not is_retriable(error) and not isinstance(error, TimedOut):
            return False
        return self._is_idempotent or is_definite(error)

    def _number(self, queue: PartitionQueue, batch: Batch) -> None:
        """Give the batch its sequence, unless it has one in the partition's epoch."""
        assert self.identity is not None, "nothing is sent before the producer has an id"
        if queue.identity is None:
            queue.identity = self.identity
        producer_id, epoch = queue.identity
        if batch.sequence == SEQUENCE_NONE or batch.identity != queue.identity:
            batch.sequence = queue.sequence
            batch.identity = queue.identity
            queue.sequence = (queue.sequence + batch.record_count) & SEQUENCE_MAX
        elif batch.encoded is not None:
            return
        if batch.encoded is None:
            batch.encoded = pack(
                batch.entries,
                codec=self._codec,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=batch.sequence,
                is_transactional=self._is_transactional,
            )
        else:
            restamp(
                batch.encoded, producer_id=producer_id, producer_epoch=epoch, base_sequence=batch.sequence
            )

    def _begin_epoch(self, queue: PartitionQueue) -> None:
        """The broker misses what comes before: go on in the next epoch, where nothing comes before."""
        assert queue.identity is not None
        producer_id, epoch = queue.identity
        if epoch < EPOCH_MAX:
            queue.identity = (producer_id, ProducerEpoch(epoch + 1))
        else:
            if self.identity is not None and self.identity[0] == producer_id:
                self.identity = None  # the sender asks for another
            queue.identity = None
        queue.sequence = 0
        queue.known_as = None
        for batch in [each for each in queue.waiting if each.may_be_there]:
            queue.waiting.remove(batch)
            self._abandon(queue, batch)

    def _abandon(self, queue: PartitionQueue, batch: Batch) -> None:
        """Its epoch is over, and it may be in the log under it."""
        text = "what became of it is not known, and the epoch in which it could be asked for again is over"
        self._give_up(
            queue,
            batch,
            RemoteError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text, about=str(batch.partition)),
        )

    def _gather(self, queue: PartitionQueue) -> None:
        """When all of the partition have come back, those to be repeated stand first in line, in their order."""
        if queue.returned and not queue.in_flight:
            returned = sorted(queue.returned, key=lambda batch: batch.number)
            queue.returned = []
            former = [each for each in returned if each.may_be_there and each.identity != queue.identity]
            queue.waiting.extendleft(batch for batch in reversed(returned) if batch not in former)
            for batch in former:
                self._abandon(queue, batch)
        self._retire(queue)

    def _give_up(self, queue: PartitionQueue, batch: Batch, error: RopewalkError) -> None:
        self._account(queue, batch)
        batch.fail(error)
        self._on_settled(batch)
        self._retire(queue)

    def _settle(self, queue: PartitionQueue, batch: Batch, produced: Produced) -> None:
        self._account(queue, batch)
        batch.settle(produced)
        self._on_settled(batch)

    def _account(self, queue: PartitionQueue, batch: Batch) -> None:
        self.held_bytes -= batch.size_bytes
        queue.queued_bytes -= batch.size_bytes
        assert self.held_bytes >= 0

    def _retire(self, queue: PartitionQueue) -> None:
        if queue.is_idle:
            self._active.pop(queue.partition, None)
