"""What batches of a transaction need before they may enter a log: permission of their coordinator, where they are the first of it.

Behaviour worth knowing
    A batch that continues what its producer has open in the partition needs no permission, so most requests come through here at once.
    From Produce v12 on to ask for permission is to add the partition to the transaction. Older clients have added it before, and the coordinator is
    only asked whether they have: a write that was delayed must not come into the next transaction, or into none (KIP-890).
    While the coordinator is asked, the client's next request is kept back and its batches stay where they are.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from ropewalk.base.errors import (
    InvalidTransactionState,
    NotEnoughReplicas,
    ProducerFenced,
    RopewalkError,
    ShardElsewhere,
    ShardLoading,
    ShardUnavailable,
)
from ropewalk.base.ids import TopicId, TopicPartition
from ropewalk.broker.dispatch.transaction_entry import Outcomes
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.verification import VerificationGuard
from ropewalk.kafka.caller import Caller
from ropewalk.metadata.internal_topics import NODES_TOPICS
from ropewalk.records.batch import decode_header
from ropewalk.transactions.commands import AddPartitions
from ropewalk.transactions.errors import (
    ConcurrentTransactions,
    NotInTransaction,
    TransactionalProducerFenced,
    UnknownProducerMapping,
)
from ropewalk.wire.messages.produce import ProduceRequest, TopicProduceData

BY_ID_SINCE: Final = 13
_ADDS_SINCE: Final = 12
_ABORTABLE_SINCE: Final = 11

Join = Callable[[AddPartitions], Awaitable[Outcomes]]
Permission = VerificationGuard | RopewalkError
Permissions = dict[TopicPartition, Permission]
"""What the coordinator said, for each partition that permission was needed for; an error where it refused."""


def find_led(topic: TopicProduceData, index: int, version: int, hosted: HostedPartitions) -> Partition:
    if version >= BY_ID_SINCE:
        return hosted.find_by_id(TopicId(topic.topic_id), index)
    return hosted.find(topic.name, index)


async def enter(request: ProduceRequest, caller: Caller, hosted: HostedPartitions, join: Join) -> Permissions:
    """Ask the coordinator if need be. A batch that cannot be read, or has no place here, is refused later like any other."""
    assert request.transactional_id is not None, "only such requests come here"
    permissions: Permissions = {}
    guards: dict[TopicPartition, VerificationGuard] = {}
    producers: set[tuple[int, int]] = set()
    for topic in request.topics:
        for data in topic.partitions:
            try:
                partition = find_led(topic, data.index, caller.version, hosted)
                if partition.name.topic in NODES_TOPICS:
                    continue
                header = decode_header(memoryview(data.records or b""))
                if not header.is_transactional:
                    continue
                producers.add((header.producer_id, header.producer_epoch))
                guard = partition.verification_needed(header, bumps_epoch=caller.version >= _ADDS_SINCE)
            except RopewalkError:
                continue
            if guard is not None:
                guards[partition.name] = guard
    if not guards:
        return permissions
    if len(producers) > 1:
        refusal = UnknownProducerMapping("one request holds batches of several transactional producers")
        return dict.fromkeys(guards, refusal)
    ((producer_id, producer_epoch),) = producers
    command = AddPartitions(
        transactional_id=request.transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partitions=tuple(guards),
        verify_only=caller.version < _ADDS_SINCE,
    )
    caller.keep_back()
    outcomes = await join(command)
    for partition_name, guard in guards.items():
        error = outcomes[partition_name]
        permissions[partition_name] = guard if error is None else refused(error, caller.version)
    return permissions


def refused(error: RopewalkError, version: int) -> RopewalkError:
    """In the terms of Produce, which knows no coordinators. What may pass is an error upon which every client tries again."""
    match error:
        case TransactionalProducerFenced():
            return ProducerFenced(str(error))
        case ShardElsewhere() | ShardLoading() | ShardUnavailable():
            return NotEnoughReplicas(f"the transaction cannot be verified at present: {error}")
        case ConcurrentTransactions() if version < _ADDS_SINCE:
            return NotEnoughReplicas(f"the transaction cannot be verified at present: {error}")
        case NotInTransaction() if version < _ABORTABLE_SINCE:
            return InvalidTransactionState(str(error))
        case InvalidTransactionState() if version >= _ADDS_SINCE:
            return NotInTransaction(str(error))
        case _:
            return error
