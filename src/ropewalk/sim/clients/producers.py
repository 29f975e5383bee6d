"""Clients that write, plain and idempotent, each with a view of its own on what an error means.

A plain producer sends a few batches at once over one connection and takes each answer as it comes; where
the outcome is unknown it sometimes sends the same records again, which may duplicate them. An idempotent
producer sends up to five batches ahead and sends again, in order, whatever was not acknowledged, until it
is; that must not duplicate anything.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import NO_PRODUCER, ProducerEpoch, ProducerId, TopicPartition
from ropewalk.records.batch import SEQUENCE_NONE
from ropewalk.records.codec import Codec
from ropewalk.records.record import build
from ropewalk.sim.clients.content import is_tombstone, key_of, keyed_record, plain_record
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.workload import REQUEST_TIMEOUT_MS, TOPIC_BY_NAME_VERSION_MAX, Caller
from ropewalk.sim.judges.history import Acknowledged, Failed, Forgotten, Sent
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import init_producer_id, produce

IN_FLIGHT_MAX: Final = 5
"""As many batches as a node remembers of each producer."""

_NO_EPOCH: Final = ProducerEpoch(-1)
_SEQUENCE_REFUSED: Final = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH}
)


_INDEFINITE: Final = frozenset(
    {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR}
)
"""After these the write may still be in the log."""


class Batch(Struct):
    """One batch to one partition, as often as it takes."""

    partition: TopicPartition
    values: tuple[int, ...]
    codec: Codec
    timestamp_ms: int
    base_sequence: int = SEQUENCE_NONE
    sent_count: int = 0


class Sending(Struct):
    """One sending of one batch."""

    batch: Batch
    send: int
    end_seen: int
    """What was known of the partition's end when it was sent."""
    answer: "asyncio.Future[produce.ProduceResponse]"


class Identity(Struct, frozen=True):
    producer_id: ProducerId = NO_PRODUCER
    producer_epoch: ProducerEpoch = _NO_EPOCH


async def ask_identity(link: Link, *, transaction_timeout_ms: int) -> Identity | None:
    """Of an idempotent producer without transactions; None where it is refused."""
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=transaction_timeout_ms
    )
    response = await link.send(init_producer_id.API, link.newest_version(init_producer_id.API), request)
    if response.error_code != ErrorCode.NONE:
        return None
    return Identity(ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch))


class Producer:
    """What both kinds do alike: draw a batch, send it, and write down what became of it."""

    def __init__(
        self,
        caller: Caller,
        *,
        acks: int,
        version_min: int = 0,
        indefinite: frozenset[ErrorCode] = _INDEFINITE,
        is_believed: bool = True,
    ) -> None:
        """`is_believed`: whether an acknowledgement is a promise. That of a leader alone is none where there are others."""
        self.caller = caller
        self.acks = acks
        self._version_min = version_min
        self._indefinite = indefinite
        self._is_believed = is_believed
        self.identity = Identity()

    def draw_batch(self, partition: TopicPartition) -> Batch:
        rng, workload = self.caller.rng, self.caller.workload
        count = 1 if rng.random() < 0.5 else rng.randrange(1, 6)
        return Batch(
            partition,
            tuple(workload.next_value() for _ in range(count)),
            rng.choice([Codec.NONE, Codec.NONE, Codec.NONE, Codec.LZ4, Codec.GZIP]),
            self.caller.clock.now_ms(),
        )

    def send(self, link: Link, batch: Batch) -> Sending | None:
        """Write the request; None where no answer will come (acks=0)."""
        caller, workload = self.caller, self.caller.workload
        version = max(self._version_min, caller.draw_version(link, produce.API))
        topic = produce.TopicProduceData(
            name=batch.partition.topic if version <= TOPIC_BY_NAME_VERSION_MAX else "",
            topic_id=workload.topics.id_of(batch.partition.topic),
            partitions=(
                produce.PartitionProduceData(index=batch.partition.partition, records=self._encode(batch)),
            ),
        )
        request = produce.ProduceRequest(acks=self.acks, timeout_ms=REQUEST_TIMEOUT_MS, topics=(topic,))
        send = workload.journal.next_send()
        is_idempotent = self.identity.producer_id != NO_PRODUCER
        is_keyed = workload.topics.promise_of(batch.partition.topic).is_compacted
        workload.journal.note(
            Sent(
                send,
                caller.name,
                batch.partition,
                batch.values,
                self.acks,
                is_idempotent,
                caller.number_of(link),
                batch.timestamp_ms,
                tuple(key_of(value) for value in batch.values) if is_keyed else (),
                frozenset(value for value in batch.values if is_keyed and is_tombstone(value)),
            )
        )
        workload.operation_count += 1
        batch.sent_count += 1
        if is_idempotent and batch.sent_count > 1:
            workload.sometimes.note("an idempotent batch was sent again")
        if self.acks == 0:
            link.send_unanswered(produce.API, version, request)
            return None
        answer = link.send(produce.API, version, request)
        return Sending(batch, send, workload.end_seen.get(batch.partition, 0), answer)

    def send_all(self, link: Link, batches: Sequence[Batch]) -> list[Sending]:
        """As many as the connection takes, without those that are not answered."""
        sendings: list[Sending] = []
        for batch in batches:
            try:
                sending = self.send(link, batch)
            except LinkLost:
                break
            if sending is not None:
                sendings.append(sending)
        return sendings

    async def settle(self, sending: Sending) -> ErrorCode | None:
        """Wait for the answer and write it down; the node's code, or None where nobody knows what happened."""
        journal, sometimes = self.caller.workload.journal, self.caller.workload.sometimes
        try:
            response = await sending.answer
        except LinkLost as error:
            journal.note(Failed(sending.send, False, type(error).__name__))
            sometimes.note("a write's outcome stayed unknown")
            return None
        (answer,) = response.topics[0].partitions
        code = ErrorCode(answer.error_code)
        if code == ErrorCode.NONE and not self._is_believed:
            journal.note(Failed(sending.send, False, "acknowledged by the leader alone"))
            sometimes.note("a write was acknowledged by its leader alone")
        elif code == ErrorCode.NONE:
            journal.note(Acknowledged(sending.send, answer.base_offset))
            sometimes.note("a write was acknowledged")
            batch = sending.batch
            if batch.sent_count > 1 and answer.base_offset < sending.end_seen and batch.base_sequence >= 0:
                sometimes.note("an idempotent batch sent again had been written already")
            self.caller.workload.see_end(batch.partition, answer.base_offset + len(batch.values))
        elif code not in self._indefinite:
            journal.note(Failed(sending.send, True, code.name))
            sometimes.note("a write was definitely refused")
        else:
            journal.note(Failed(sending.send, False, code.name))
            sometimes.note("a write's outcome stayed unknown")
        return code

    def _encode(self, batch: Batch) -> bytes:
        promise = self.caller.workload.topics.promise_of(batch.partition.topic)
        make = keyed_record if promise.is_compacted else plain_record
        records = [make(value, batch.timestamp_ms) for value in batch.values]
        return bytes(
            build(
                records,
                codec=batch.codec,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.producer_epoch,
                base_sequence=batch.base_sequence,
            )
        )


class PlainProducer(Producer):
    """Writes to every partition, a few batches at a time."""

    async def run(self) -> None:
        caller = self.caller
        again: list[Batch] = []
        while (link := await caller.connect()) is not None:
            while link.is_open and not caller.workload.is_over:
                fresh = [
                    self.draw_batch(caller.workload.draw_partition(caller.rng))
                    for _ in range(caller.rng.randrange(1, 4))
                ]
                batches, again = [*again, *fresh], []
                settled = [(each.batch, await self.settle(each)) for each in self.send_all(link, batches)]
                again += [batch for batch, code in settled if code is None and caller.rng.random() < 0.3]
                await caller.pause(0.25)
            link.close()


class IdempotentProducer(Producer):
    """Writes to one partition, in order, each batch exactly once."""

    def __init__(
        self,
        caller: Caller,
        partition: TopicPartition,
        *,
        indefinite: frozenset[ErrorCode] = _INDEFINITE,
    ) -> None:
        super().__init__(caller, acks=-1, indefinite=indefinite)
        self._partition = partition
        self._sequence = 0
        self._outstanding: list[Batch] = []

    async def run(self) -> None:
        caller = self.caller
        while (link := await caller.connect()) is not None:
            if self.identity.producer_id != NO_PRODUCER or await self._identify(link):
                while link.is_open and not caller.workload.is_over:
                    await self._round(link)
                    await caller.pause(0.25)
            link.close()

    async def _identify(self, link: Link) -> bool:
        try:
            identity = await ask_identity(link, transaction_timeout_ms=60_000)
        except LinkLost:
            return False
        if identity is None:
            return False
        self.identity = identity
        return True

    async def _round(self, link: Link, *, may_add: bool = True) -> None:
        """Send everything not acknowledged yet, oldest first, and some more; then take the answers."""
        count = self.caller.rng.randrange(1, IN_FLIGHT_MAX + 1) if may_add else 0
        while len(self._outstanding) < count:
            batch = self.draw_batch(self._partition)
            batch.base_sequence = self._sequence
            self._sequence += len(batch.values)
            self._outstanding.append(batch)
        sendings = self.send_all(link, self._outstanding)
        for sending in sendings:
            is_next = sending.batch is self._outstanding[0]
            code = await self.settle(sending)
            if code == ErrorCode.NONE:
                self._outstanding.remove(sending.batch)
            elif is_next and code in _SEQUENCE_REFUSED:
                assert code is not None
                text = f"{self.caller.name} was refused sequence {sending.batch.base_sequence}: {code.name}"
                self.on_forgotten(Forgotten(self._partition, text))
        if sendings and len(self._outstanding) and not link.is_open:
            await self.caller.pause(0.2)

    def on_forgotten(self, event: Forgotten) -> None:
        """The node does not know what it had acknowledged of this producer."""
        self.caller.workload.journal.note(event)
