"""Messages of queues, and what is given out of them, between engine and wire."""

from ropewalk.base.ids import Offset
from ropewalk.queues.commands import Handle
from ropewalk.queues.messages import Delivered, Receipt
from ropewalk.records.record import Record
from ropewalk.wire.peer.queue_parts import QueueDelivered, QueueHandle, QueueHeader, QueueRecord


def to_headers(headers: tuple[tuple[str, bytes | None], ...]) -> tuple[QueueHeader, ...]:
    return tuple([QueueHeader(name, value) for name, value in headers])


def of_headers(headers: tuple[QueueHeader, ...]) -> tuple[tuple[str, bytes | None], ...]:
    return tuple([(each.name, None if each.value is None else bytes(each.value)) for each in headers])


def to_record(record: Record) -> QueueRecord:
    return QueueRecord(record.offset, record.timestamp, record.key, record.value, to_headers(record.headers))


def of_record(record: QueueRecord) -> Record:
    return Record(
        Offset(record.offset),
        record.timestamp,
        None if record.key is None else bytes(record.key),
        None if record.value is None else bytes(record.value),
        of_headers(record.headers),
    )


def to_delivered(delivered: Delivered) -> QueueDelivered:
    receipt = delivered.receipt
    return QueueDelivered(
        receipt.partition,
        receipt.attempt,
        delivered.receive_count,
        delivered.first_received_at_ms,
        to_record(delivered.record),
    )


def of_delivered(delivered: QueueDelivered) -> Delivered:
    record = of_record(delivered.record)
    return Delivered(
        Receipt(delivered.partition, record.offset, delivered.attempt),
        record,
        delivered.receive_count,
        delivered.first_received_at_ms,
    )


def of_handles(handles: tuple[QueueHandle, ...]) -> tuple[Handle, ...]:
    return tuple([Handle(each.offset, each.attempt) for each in handles])
