"""Events as records of Kafka's `__transaction_state`, so that Kafka's own tools can read the topic, and we Kafka's.

Kafka's record does not say which epoch came before the current one: mostly it can be told, and otherwise, as for a producer
that went on after an error, Kafka forgets it over a failover. We write it under a tag of our own where it cannot be
told, and Kafka skips that.
"""

from itertools import groupby
from struct import error as layout_error
from typing import Annotated, Final

from msgspec.structs import replace

from ropewalk.base.errors import InvalidRecord, ProtocolError
from ropewalk.base.ids import TopicPartition
from ropewalk.transactions.events import (
    NO_EPOCH,
    NO_ID,
    VERSION_OWN_EPOCH,
    Event,
    TransactionalIdRemoved,
    TransactionRecorded,
    TransactionState,
)
from ropewalk.transactions.identity import EPOCH_LAST
from ropewalk.wire.compile import compile_decoder, compile_encoder
from ropewalk.wire.types import OWN_TAG_FIRST, Buffer, Int8, Int16, Int32, Int64, Message, since, tagged

_CAN_BE_TOLD: Final = -2


class TransactionLogKey(Message, frozen=True):
    transactional_id: str


class PartitionsSchema(Message, frozen=True):
    topic: str
    partition_ids: tuple[Int32, ...]


class TransactionLogValue(Message, frozen=True):
    """v1 flexible encoding, with the tagged fields."""

    producer_id: Int64
    previous_producer_id: Annotated[Int64, since(1), tagged(0)] = NO_ID
    next_producer_id: Annotated[Int64, since(1), tagged(1)] = NO_ID
    producer_epoch: Int16 = 0
    next_producer_epoch: Annotated[Int16, since(1), tagged(3)] = NO_EPOCH
    """Of two-phase commit, which there is none of here."""
    transaction_timeout_ms: Int32 = 0
    transaction_status: Int8 = 0
    transaction_partitions: tuple[PartitionsSchema, ...] | None = None
    transaction_last_update_timestamp_ms: Int64 = -1
    transaction_start_timestamp_ms: Int64 = -1
    client_transaction_version: Annotated[Int16, since(1), tagged(2)] = 0
    previous_epoch: Annotated[Int16, since(1), tagged(OWN_TAG_FIRST)] = _CAN_BE_TOLD


_STATUSES: Final = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)
"""By Kafka's number. The two that follow there are never recorded."""
_STATUS_NUMBERS: Final = {state: number for number, state in enumerate(_STATUSES)}

_KEY_VERSION: Final = 0
_VALUE_VERSION: Final = 1
_encode_key = compile_encoder(TransactionLogKey, _KEY_VERSION, flexible=False)
_decode_key = compile_decoder(TransactionLogKey, _KEY_VERSION, flexible=False)
_encode_value = compile_encoder(TransactionLogValue, _VALUE_VERSION, flexible=True)
_value_decoders: Final = {
    0: compile_decoder(TransactionLogValue, 0, flexible=False),
    1: compile_decoder(TransactionLogValue, 1, flexible=True),
}


def encode_event(event: Event) -> tuple[bytes, bytes | None]:
    """The key and the value of the record that stands for `event`."""
    key = b"".join((_KEY_VERSION.to_bytes(2, "big"), *_encode_key(TransactionLogKey(event.transactional_id))))
    match event:
        case TransactionRecorded():
            return key, b"".join((_VALUE_VERSION.to_bytes(2, "big"), *_encode_value(_value(event))))
        case TransactionalIdRemoved():
            return key, None


def decode_event(key: Buffer, value: Buffer | None) -> Event | None:
    """The inverse of `encode_event`; None for a record of another kind.

    Raises `InvalidRecord` for one of ours that cannot be read: to skip it would be to forget a transaction.
    """
    if len(key) < 2 or int.from_bytes(memoryview(key)[:2], "big", signed=True) != _KEY_VERSION:
        return None
    try:
        transactional_id = _decode_key(memoryview(key), 2, len(key)).transactional_id
        if value is None:
            return TransactionalIdRemoved(transactional_id)
        view = memoryview(value)
        decode = _value_decoders.get(int.from_bytes(view[:2], "big", signed=True))
        if decode is None or len(view) < 2:
            raise InvalidRecord(f"the state of {transactional_id!r} is of a version that is not known")
        return _recorded(transactional_id, decode(view, 2, len(view)))
    except (ProtocolError, layout_error, IndexError, UnicodeDecodeError) as problem:
        raise InvalidRecord("the state of a transactional id is cut short or garbled") from problem


def _value(event: TransactionRecorded) -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=event.producer_id,
        previous_producer_id=event.previous_producer_id,
        next_producer_id=event.next_producer_id,
        producer_epoch=event.producer_epoch,
        transaction_timeout_ms=event.timeout_ms,
        transaction_status=_STATUS_NUMBERS[event.state],
        transaction_partitions=None
        if event.state is TransactionState.EMPTY
        else tuple(
            PartitionsSchema(topic, tuple(partition.partition for partition in partitions))
            for topic, partitions in groupby(event.partitions, lambda partition: partition.topic)
        ),
        transaction_last_update_timestamp_ms=event.updated_at_ms,
        transaction_start_timestamp_ms=event.started_at_ms,
        client_transaction_version=event.version,
        previous_epoch=_CAN_BE_TOLD if event.previous_epoch == _told_epoch(event) else event.previous_epoch,
    )


def _recorded(transactional_id: str, value: TransactionLogValue) -> TransactionRecorded:
    if not 0 <= value.transaction_status < len(_STATUSES):
        raise InvalidRecord(
            f"{transactional_id!r} is in state {value.transaction_status}, which is not known"
        )
    event = TransactionRecorded(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        state=_STATUSES[value.transaction_status],
        timeout_ms=value.transaction_timeout_ms,
        partitions=tuple(
            TopicPartition(entry.topic, partition)
            for entry in value.transaction_partitions or ()
            for partition in entry.partition_ids
        ),
        started_at_ms=value.transaction_start_timestamp_ms,
        updated_at_ms=value.transaction_last_update_timestamp_ms,
        version=value.client_transaction_version,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        previous_epoch=value.previous_epoch,
    )
    if event.previous_epoch != _CAN_BE_TOLD:
        return event
    return replace(event, previous_epoch=_told_epoch(event))


def _told_epoch(event: TransactionRecorded) -> int:
    """What came before, of a transaction that has raised the epoch as it ended; else nothing that counts."""
    has_ended = event.state not in (TransactionState.EMPTY, TransactionState.ONGOING)
    if not has_ended or event.version < VERSION_OWN_EPOCH:
        return NO_EPOCH
    if event.producer_epoch > 0:
        return event.producer_epoch - 1
    return EPOCH_LAST if event.previous_producer_id != event.producer_id else NO_EPOCH
