"""A producer for lines and other small records: chooses partitions, makes batches, numbers them.

With acks=all it is idempotent: each batch carries the producer's id, epoch and a sequence per partition, so
that a batch sent again after a lost answer is not appended twice. Records given together reach each
partition in their order.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.ids import NO_PRODUCER, ProducerEpoch, ProducerId
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.calls.partitioner import Partitioner
from ropewalk.client.calls.produce import Acks, Produced
from ropewalk.client.calls.together import together
from ropewalk.client.errors import ApiNotOffered
from ropewalk.records.batch import SEQUENCE_MAX, SEQUENCE_NONE
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build

_RECORD_OVERHEAD_BYTES: Final = 32
"""More than a record's own lengths, deltas and attributes ever take, so that batches stay below their limit."""


class Delivered(Struct, frozen=True, gc=False):
    """One batch that arrived; `base_offset` is -1 where the broker was asked not to answer."""

    partition: int
    base_offset: int
    record_count: int


class Producer:
    """Writes to one topic. Owned by one task: `send` is not called again before it has returned."""

    def __init__(
        self, client: Client, topic: str, *, acks: Acks = Acks.ALL, codec: Codec = Codec.NONE
    ) -> None:
        self._client = client
        self._topic = topic
        self._acks = acks
        self._codec = codec
        self._partitioner = Partitioner()
        self._identity: tuple[ProducerId, ProducerEpoch] | None = None
        self._sequences: dict[int, int] = {}
        self._has_failed = False

    async def send(self, records: Sequence[Record], *, partition: int | None = None) -> list[Delivered]:
        """Send all, to `partition` or where their keys say, and wait for the acknowledgements."""
        if not records:
            return []
        if self._has_failed:
            # Batches may be in the log, or not: sequences that go on from there would be a guess.
            self._identity, self._has_failed = None, False
            self._sequences.clear()
        if self._identity is None:
            self._identity = await self._identify()
        by_partition = (
            {partition: list(records)} if partition is not None else await self._distribute(records)
        )
        try:
            delivered = await together(
                [self._send_in_order(index, chosen) for index, chosen in sorted(by_partition.items())]
            )
        except BaseException:
            self._has_failed = True
            raise
        return [batch for batches in delivered for batch in batches]

    async def drain(self) -> None:
        """Wait until the brokers have read everything sent with acks=0, which nobody acknowledges.

        A broker handles the requests of one connection in order, so the answer to a question asked behind the
        records says that they were read; not that they were taken.
        """
        if self._acks is Acks.NONE and self._sequences:
            await self._client.list_offsets(self._topic, dict.fromkeys(self._sequences, OffsetQuery.LATEST))

    async def _identify(self) -> tuple[ProducerId, ProducerEpoch]:
        if self._acks is Acks.ALL:
            try:
                return await self._client.init_producer_id()
            except ApiNotOffered:
                pass  # a broker without idempotence still takes records
        return NO_PRODUCER, ProducerEpoch(-1)

    async def _distribute(self, records: Sequence[Record]) -> Mapping[int, list[Record]]:
        topic = await self._client.topic(self._topic, may_create=True)
        by_partition: dict[int, list[Record]] = {}
        for record in records:
            index = self._partitioner.choose(record.key, len(topic.partitions))
            by_partition.setdefault(index, []).append(record)
        return by_partition

    async def _send_in_order(self, partition: int, records: Sequence[Record]) -> list[Delivered]:
        delivered = []
        for chosen in batches_of(records, bytes_max=self._client.session.settings.batch_bytes):
            produced = await self._send_batch(partition, chosen)
            delivered.append(Delivered(partition, produced.base_offset, len(chosen)))
        return delivered

    async def _send_batch(self, partition: int, records: Sequence[Record]) -> Produced:
        assert self._identity is not None
        producer_id, producer_epoch = self._identity
        sequence = self._sequences.get(partition, 0)
        batch = build(
            records,
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=SEQUENCE_NONE if producer_id == NO_PRODUCER else sequence,
        )
        produced = await self._client.produce(self._topic, partition, batch, acks=self._acks)
        self._sequences[partition] = (sequence + len(records)) & SEQUENCE_MAX
        return produced


def batches_of(records: Sequence[Record], *, bytes_max: int) -> Iterator[Sequence[Record]]:
    """Runs of records that stay below `bytes_max` uncompressed; a larger record goes alone."""
    start, size = 0, 0
    for position, record in enumerate(records):
        record_bytes = _size_bytes(record)
        if position > start and size + record_bytes > bytes_max:
            yield records[start:position]
            start, size = position, 0
        size += record_bytes
    if start < len(records):
        yield records[start:]


def _size_bytes(record: Record) -> int:
    headers = sum(
        len(name) * 4 + len(value or b"") + _RECORD_OVERHEAD_BYTES for name, value in record.headers
    )
    return len(record.key or b"") + len(record.value or b"") + headers + _RECORD_OVERHEAD_BYTES
