"""How a transaction ends: by its producer, or by the coordinator, which aborts what takes too long or is taken over.

    original       EndTxn below version 5. The epoch stays. The same end again is a success, also of the next
                   transaction if that has not begun: nobody can tell the two apart (KAFKA-17754)
    own epoch      EndTxn from version 5 on. The end raises the epoch, and the answer says so. The former epoch is known
                   to be a repetition, the current one to be another transaction

    own epoch                     abort, repeated   abort, current   commit, repeated   commit, current
    Empty                         fenced            raises epoch     fenced             wrong state
    Ongoing                       fenced            prepares         fenced             prepares
    PrepareCommit, PrepareAbort   concurrent if that is its outcome, else wrong state; current: concurrent
    CompleteAbort                 done              raises epoch     wrong state        wrong state
    CompleteCommit                wrong state       raises epoch     done               wrong state

An abort with nothing to abort raises the epoch since the producer may not know whether a write of its own has
arrived, and wants to be sure that it never will. There is no partition to write a marker to, so it is complete at once.

Where Kafka differs: the current epoch during Prepare* is fenced there, though the producer was told to use it.
"""

from msgspec.structs import replace

from ropewalk.transactions.answers import Ended, ProducerIdWanted
from ropewalk.transactions.commands import EndTransaction
from ropewalk.transactions.errors import (
    ConcurrentTransactions,
    TransactionalProducerFenced,
    WrongTransactionState,
)
from ropewalk.transactions.events import (
    NO_ID,
    VERSION_ORIGINAL,
    VERSION_OWN_EPOCH,
    TransactionRecorded,
    TransactionState,
)
from ropewalk.transactions.identity import (
    EPOCH_LAST,
    EPOCH_MAX,
    Identity,
    check_holder,
    former_holder,
    holder,
)
from ropewalk.transactions.step import Decision


def decide_end(record: TransactionRecorded | None, command: EndTransaction, now_ms: int) -> Decision:
    producer = Identity(command.producer_id, command.producer_epoch)
    if not command.bumps_epoch:
        known = check_holder(record, producer, command.transactional_id)
        return _end_original(known, committed=command.committed, now_ms=now_ms)
    if record is not None and producer == former_holder(record):
        return _end_repeated(record, command, now_ms)
    return _end_current(check_holder(record, producer, command.transactional_id), command, now_ms)


def aborted_by_coordinator(record: TransactionRecorded, now_ms: int) -> TransactionRecorded:
    """The producer is fenced by the markers, and may learn of its next epoch by aborting, too.

    It may be left with `EPOCH_MAX`, which nobody can use. Whoever asks next is given another producer id.
    """
    assert record.state is TransactionState.ONGOING
    return _prepared(
        record, committed=False, version=VERSION_OWN_EPOCH, next_producer_id=NO_ID, now_ms=now_ms
    )


def completed(record: TransactionRecorded, now_ms: int) -> TransactionRecorded:
    """Every marker is written."""
    assert record.state.is_prepared
    is_committed = record.state is TransactionState.PREPARE_COMMIT
    producer = holder(record)
    return replace(
        record,
        state=TransactionState.COMPLETE_COMMIT if is_committed else TransactionState.COMPLETE_ABORT,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        previous_producer_id=record.producer_id,
        next_producer_id=NO_ID,
        partitions=(),
        updated_at_ms=now_ms,
    )


def _end_original(record: TransactionRecorded, *, committed: bool, now_ms: int) -> Decision:
    if record.state is TransactionState.ONGOING:
        event = _prepared(
            record, committed=committed, version=VERSION_ORIGINAL, next_producer_id=NO_ID, now_ms=now_ms
        )
        return _ended(event, event)
    _check_outcome(record, committed=committed)
    return _ended(record)


def _end_current(record: TransactionRecorded, command: EndTransaction, now_ms: int) -> Decision:
    if record.state.is_prepared:
        raise _being_finished(record)
    if command.committed and record.state is not TransactionState.ONGOING:
        raise WrongTransactionState(f"{record.transactional_id!r} has no transaction to commit")
    fresh_producer_id = NO_ID
    if record.producer_epoch >= EPOCH_LAST:
        if command.fresh_producer_id is None:
            return Decision(ProducerIdWanted())
        fresh_producer_id = command.fresh_producer_id
    event = _prepared(
        record,
        committed=command.committed,
        version=VERSION_OWN_EPOCH,
        next_producer_id=fresh_producer_id,
        now_ms=now_ms,
    )
    return _ended(event, event)


def _end_repeated(record: TransactionRecorded, command: EndTransaction, now_ms: int) -> Decision:
    """By the epoch from before the end, or before a producer went on after an error: then there was no end to repeat."""
    if record.state in (TransactionState.EMPTY, TransactionState.ONGOING):
        raise TransactionalProducerFenced(
            f"{record.transactional_id!r} has gone on since epoch {command.producer_epoch}"
        )
    _check_outcome(record, committed=command.committed)
    if record.producer_epoch < EPOCH_MAX:
        return _ended(record)
    if command.fresh_producer_id is None:
        return Decision(ProducerIdWanted())
    event = replace(
        record,
        producer_id=command.fresh_producer_id,
        producer_epoch=0,
        previous_producer_id=record.producer_id,
        updated_at_ms=now_ms,
    )
    return _ended(event, event)


def _prepared(
    record: TransactionRecorded, *, committed: bool, version: int, next_producer_id: int, now_ms: int
) -> TransactionRecorded:
    bumps = version >= VERSION_OWN_EPOCH
    event = replace(
        record,
        state=TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
        producer_epoch=min(record.producer_epoch + 1, EPOCH_MAX) if bumps else record.producer_epoch,
        previous_epoch=record.producer_epoch if bumps else record.previous_epoch,
        previous_producer_id=record.producer_id,
        next_producer_id=next_producer_id,
        started_at_ms=record.started_at_ms if record.state is TransactionState.ONGOING else now_ms,
        updated_at_ms=now_ms,
        version=version,
    )
    return event if event.partitions else completed(event, now_ms)


def _check_outcome(record: TransactionRecorded, *, committed: bool) -> None:
    """That this is how the transaction was ended, and that it is finished."""
    ends = (
        (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
        if committed
        else (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
    )
    if record.state not in ends:
        wanted = "commit" if committed else "abort"
        raise WrongTransactionState(
            f"{record.transactional_id!r} cannot {wanted} in state {record.state.value}"
        )
    if record.state.is_prepared:
        raise _being_finished(record)


def _being_finished(record: TransactionRecorded) -> ConcurrentTransactions:
    return ConcurrentTransactions(
        f"a transaction of {record.transactional_id!r} is in state {record.state.value}"
    )


def _ended(record: TransactionRecorded, event: TransactionRecorded | None = None) -> Decision:
    producer = holder(record)
    return Decision(Ended(producer.producer_id, producer.epoch), event)
