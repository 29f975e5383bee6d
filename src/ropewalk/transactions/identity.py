"""Who a producer is to the coordinator: a producer id and an epoch of it, and what to do when the epochs run out.

An epoch is a signed number of sixteen bits. The largest is never given to a producer: a transaction that was written with
the one before it still needs a larger one for its markers. A producer that has come to `EPOCH_LAST` goes on with
another producer id, from epoch 0.
"""

from typing import Final

from msgspec import Struct

from ropewalk.base.limits import TRANSACTIONAL_ID_BYTES_MAX
from ropewalk.transactions.errors import (
    InvalidTransactionRequest,
    TransactionalProducerFenced,
    UnknownProducerMapping,
)
from ropewalk.transactions.events import NO_EPOCH, NO_ID, TransactionRecorded

EPOCH_MAX: Final = 2**15 - 1
"""For markers only."""
EPOCH_LAST: Final = EPOCH_MAX - 1
"""The last that a producer can have."""


class Identity(Struct, frozen=True, gc=False):
    producer_id: int
    epoch: int


def holder(record: TransactionRecorded) -> Identity:
    """Whom the transactional id belongs to. While a transaction is being finished, that is who the producer is for the
    next one, since it has been told already.
    """
    if record.next_producer_id != NO_ID:
        return Identity(record.next_producer_id, 0)
    return Identity(record.producer_id, record.producer_epoch)


def former_holder(record: TransactionRecorded) -> Identity | None:
    """Who may not have heard that it has another epoch, and perhaps another producer id; None if that can be nobody."""
    if record.previous_epoch == NO_EPOCH:
        return None
    has_moved = record.previous_producer_id != NO_ID and record.producer_epoch == 0
    return Identity(record.previous_producer_id if has_moved else record.producer_id, record.previous_epoch)


def check_holder(
    record: TransactionRecorded | None, producer: Identity, transactional_id: str
) -> TransactionRecorded:
    """Refuse whoever does not hold the transactional id."""
    check_transactional_id(transactional_id)
    if record is None:
        raise UnknownProducerMapping(f"{transactional_id!r} is held by no producer")
    if producer != holder(record):
        raise turned_away(record, producer)
    return record


def turned_away(
    record: TransactionRecorded, producer: Identity
) -> TransactionalProducerFenced | UnknownProducerMapping:
    """For one that does not hold the transactional id: by its producer id it may have once, or may not."""
    now = holder(record)
    who = f"{record.transactional_id!r} is held by producer {now.producer_id} with epoch {now.epoch}"
    if producer.producer_id not in (now.producer_id, record.producer_id):
        return UnknownProducerMapping(f"{who}, not by producer {producer.producer_id}")
    return TransactionalProducerFenced(f"{who}, not by {producer.producer_id} with epoch {producer.epoch}")


def check_transactional_id(transactional_id: str) -> None:
    if not transactional_id:
        raise InvalidTransactionRequest("a transactional id is never empty")
    size_bytes = len(transactional_id.encode("utf-8", "surrogatepass"))
    if size_bytes > TRANSACTIONAL_ID_BYTES_MAX:
        raise InvalidTransactionRequest(
            f"a transactional id of {size_bytes} bytes is longer than {TRANSACTIONAL_ID_BYTES_MAX}"
        )
