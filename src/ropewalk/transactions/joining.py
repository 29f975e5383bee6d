"""A partition takes part in a transaction.

An old client adds partitions before it writes to them, and the partition's leader verifies that before it takes the first
batch. A transaction with an epoch of its own is joined by that first batch: the leader adds the partition (KIP-890).
"""

from msgspec.structs import replace

from ropewalk.transactions.answers import PartitionsAdded
from ropewalk.transactions.commands import AddPartitions
from ropewalk.transactions.errors import ConcurrentTransactions, NotInTransaction
from ropewalk.transactions.events import TransactionRecorded, TransactionState
from ropewalk.transactions.identity import Identity, check_holder
from ropewalk.transactions.step import Decision


def decide_add(record: TransactionRecorded | None, command: AddPartitions, now_ms: int) -> Decision:
    producer = Identity(command.producer_id, command.producer_epoch)
    known = check_holder(record, producer, command.transactional_id)
    if known.state.is_prepared:
        raise ConcurrentTransactions(
            f"the former transaction of {known.transactional_id!r} is in state {known.state.value}"
        )
    if command.verify_only:
        return Decision(_verified(known, command))
    answer = PartitionsAdded(tuple(None for _ in command.partitions))
    partitions = {*known.partitions, *command.partitions}
    if len(partitions) == len(known.partitions):
        return Decision(answer)
    is_first = known.state is not TransactionState.ONGOING
    event = replace(
        known,
        state=TransactionState.ONGOING,
        partitions=tuple(sorted(partitions)),
        started_at_ms=now_ms if is_first else known.started_at_ms,
        updated_at_ms=now_ms,
        previous_producer_id=known.producer_id,
        version=command.version,
    )
    return Decision(answer, event)


def _verified(record: TransactionRecorded, command: AddPartitions) -> PartitionsAdded:
    present = set(record.partitions)
    return PartitionsAdded(
        tuple(
            None
            if partition in present
            else NotInTransaction(f"{partition} is not in the transaction of {record.transactional_id!r}")
            for partition in command.partitions
        )
    )
