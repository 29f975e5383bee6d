"""A producer takes a transactional id.

    one that begins     brings nothing, and fences whoever has the id: it gets the next epoch
    one that goes on    brings who it has been (KIP-360), and gets the next epoch if that is still so, or the current one
                        again if the answer to the same question was lost

A transaction that is under way is aborted first. Whoever asks hears `ConcurrentTransactions` meanwhile; the epoch is raised
for the abort, and raised again, or given out, when it asks again.

Where Kafka differs: one that goes on with an epoch that has been taken over gets the other producer's transaction aborted
there, though it is fenced itself; and one that has used up its epochs when the coordinator aborts for it meets an
internal error. Kafka also forgets over a failover which epoch came before.
"""

from msgspec.structs import replace

from ropewalk.transactions.answers import ProducerIdWanted, ProducerInitialised
from ropewalk.transactions.commands import InitProducer
from ropewalk.transactions.ending import aborted_by_coordinator
from ropewalk.transactions.errors import (
    ConcurrentTransactions,
    InvalidTransactionRequest,
    InvalidTransactionTimeout,
    TransactionalProducerFenced,
)
from ropewalk.transactions.events import (
    NEVER_MS,
    NO_EPOCH,
    NO_ID,
    VERSION_ORIGINAL,
    TransactionRecorded,
    TransactionState,
)
from ropewalk.transactions.identity import (
    EPOCH_LAST,
    EPOCH_MAX,
    Identity,
    check_transactional_id,
    former_holder,
    holder,
)
from ropewalk.transactions.settings import TransactionSettings
from ropewalk.transactions.step import Decision


def decide_init(
    record: TransactionRecorded | None, command: InitProducer, settings: TransactionSettings, now_ms: int
) -> Decision:
    check_transactional_id(command.transactional_id)
    if not 0 < command.timeout_ms <= settings.timeout_ms_max:
        raise InvalidTransactionTimeout(
            f"a transaction may take from 1 to {settings.timeout_ms_max} ms, not {command.timeout_ms}"
        )
    claimed = _claimed(command)
    if record is None:
        return _first(command, now_ms)
    is_repeated = claimed is not None and claimed == former_holder(record)
    if claimed is not None and claimed != holder(record) and not is_repeated:
        raise _fenced(record, claimed)
    if record.state.is_prepared:
        raise _being_finished(record)
    if record.state is TransactionState.ONGOING:
        if claimed is not None and is_repeated:
            raise _fenced(record, claimed)  # it has heard: nobody else could have begun the transaction
        return Decision(_being_finished(record), aborted_by_coordinator(record, now_ms))
    begun = replace(
        record,
        state=TransactionState.EMPTY,
        timeout_ms=command.timeout_ms,
        started_at_ms=NEVER_MS,
        updated_at_ms=now_ms,
    )
    if is_repeated and record.producer_epoch < EPOCH_MAX:
        return _given(begun)
    if record.producer_epoch < EPOCH_LAST:
        following = Identity(record.producer_id, record.producer_epoch + 1)
    elif command.fresh_producer_id is None:
        return Decision(ProducerIdWanted())
    else:
        following = Identity(command.fresh_producer_id, 0)
    return _given(
        replace(
            begun,
            producer_id=following.producer_id,
            producer_epoch=following.epoch,
            previous_producer_id=record.producer_id,
            # One that goes on may ask again by the epoch it has brought; one that begins leaves nobody who may.
            previous_epoch=NO_EPOCH if claimed is None else claimed.epoch,
        )
    )


def _claimed(command: InitProducer) -> Identity | None:
    claims_id, claims_epoch = command.producer_id != NO_ID, command.producer_epoch != NO_EPOCH
    if claims_id != claims_epoch:
        raise InvalidTransactionRequest(
            f"producer {command.producer_id} with epoch {command.producer_epoch} is half an identity"
        )
    return Identity(command.producer_id, command.producer_epoch) if claims_id else None


def _first(command: InitProducer, now_ms: int) -> Decision:
    """Also for one that goes on: the transactional id has expired meanwhile, and whoever held it is not known either."""
    if command.fresh_producer_id is None:
        return Decision(ProducerIdWanted())
    return _given(
        TransactionRecorded(
            transactional_id=command.transactional_id,
            producer_id=command.fresh_producer_id,
            producer_epoch=0,
            state=TransactionState.EMPTY,
            timeout_ms=command.timeout_ms,
            partitions=(),
            started_at_ms=NEVER_MS,
            updated_at_ms=now_ms,
            version=VERSION_ORIGINAL,
            previous_producer_id=command.fresh_producer_id,
        )
    )


def _given(event: TransactionRecorded) -> Decision:
    return Decision(ProducerInitialised(event.producer_id, event.producer_epoch), event)


def _being_finished(record: TransactionRecorded) -> ConcurrentTransactions:
    return ConcurrentTransactions(
        f"a transaction of {record.transactional_id!r} in state {record.state.value} has to be finished first"
    )


def _fenced(record: TransactionRecorded, claimed: Identity) -> TransactionalProducerFenced:
    now = holder(record)
    return TransactionalProducerFenced(
        f"{record.transactional_id!r} is held by producer {now.producer_id} with epoch {now.epoch}: "
        f"{claimed.producer_id} with epoch {claimed.epoch} cannot go on"
    )
