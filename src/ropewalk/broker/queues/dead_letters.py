"""What a message becomes when it is moved to another queue: the same body and attributes, and where it comes from."""

from collections.abc import Iterator, Sequence
from typing import Final

from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.broker.queues.headers import (
    DELAY_MS,
    MESSAGE_ID,
    MOVED_FROM,
    RECEIVE_COUNT,
    SOURCE_OFFSET,
    SOURCE_PARTITION,
    SOURCE_QUEUE,
    SOURCE_QUEUE_ID,
)
from ropewalk.broker.queues.message_ids import MESSAGE_ID_BYTES, make_message_id, topic_digest
from ropewalk.broker.queues.opened import header_of
from ropewalk.metadata.queues import Queue
from ropewalk.records.batch import SEQUENCE_MAX
from ropewalk.records.codec import Codec
from ropewalk.records.packing import Entry, Headers, entry_bytes, pack
from ropewalk.records.record import Record

_ORIGIN: Final = frozenset({SOURCE_QUEUE, SOURCE_QUEUE_ID, SOURCE_PARTITION, SOURCE_OFFSET})
_PAST: Final = frozenset({DELAY_MS, MESSAGE_ID, RECEIVE_COUNT, MOVED_FROM})
_REPLACED: Final = _ORIGIN | _PAST


def dead_letter(
    record: Record, source: Queue, partition: int, *, receive_count: int, sent_at_ms: int
) -> Entry:
    """`receive_count` is how often it was received from the source; what it was received elsewhere before counts, too."""
    before = header_of(record, RECEIVE_COUNT)
    if before is not None and before.isdigit():
        receive_count += int(before[:18])
    message_id = header_of(record, MESSAGE_ID)
    if message_id is None or len(message_id) != MESSAGE_ID_BYTES:
        message_id = make_message_id(topic_digest(source.topic_id), partition, record.offset)
    headers: Headers = (
        *[header for header in record.headers if header[0] not in _REPLACED],
        (MESSAGE_ID, message_id),
        (RECEIVE_COUNT, b"%d" % receive_count),
        (SOURCE_QUEUE, source.name.encode()),
        (SOURCE_QUEUE_ID, bytes(source.queue_id)),
        (SOURCE_PARTITION, b"%d" % partition),
        (SOURCE_OFFSET, b"%d" % record.offset),
    )
    return record.key, record.value, sent_at_ms, headers


def redriven(record: Record, source: Queue, target: Queue | None, *, sent_at_ms: int) -> Entry:
    """What a move task makes of a message: a new one, as SQS has it, with another id, never received and sent now. One that does not go back to where
    it came from keeps its origin."""
    origin = header_of(record, SOURCE_QUEUE)
    is_back = target is not None and origin == target.name.encode()
    left_out = _REPLACED if is_back else _PAST
    headers: Headers = (
        *[header for header in record.headers if header[0] not in left_out],
        (MOVED_FROM, source.name.encode()),
    )
    return record.key, record.value, sent_at_ms, headers


def batches_of(
    entries: Sequence[Entry], *, producer_id: int, producer_epoch: int, sequence: int, bytes_max: int
) -> Iterator[bytearray]:
    """In order, each with the sequences that follow the one before. Larger than `bytes_max` is only one of a single message."""
    batch: list[Entry] = []
    batch_bytes = 0
    for entry in entries:
        size_bytes = entry_bytes(entry[0], entry[1], entry[3])
        if batch and batch_bytes + size_bytes > bytes_max:
            yield _packed(batch, producer_id, producer_epoch, sequence)
            sequence = (sequence + len(batch)) & SEQUENCE_MAX
            batch, batch_bytes = [], 0
        batch.append(entry)
        batch_bytes += size_bytes
    if batch:
        yield _packed(batch, producer_id, producer_epoch, sequence)


def _packed(batch: Sequence[Entry], producer_id: int, producer_epoch: int, sequence: int) -> bytearray:
    return pack(
        batch,
        codec=Codec.NONE,
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(producer_epoch),
        base_sequence=sequence,
    )
