"""AddOffsetsToTxn: a transaction is about to commit offsets of a group, which is a write to the group's partition.

Behaviour worth knowing
    The topic that holds the groups is made if nobody has looked for a group's coordinator yet, and the answer waits for it.
"""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.base.limits import TRANSACTION_PATIENCE_MS
from ropewalk.broker.hosting.shard import Asked
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.fencing import code_for_producer
from ropewalk.transactions.answers import PartitionsAdded
from ropewalk.transactions.commands import AddPartitions, Command
from ropewalk.transactions.events import VERSION_ORIGINAL
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.add_offsets_to_txn import API, AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


class Transactions(Protocol):
    def ask(self, transactional_id: str, command: Command[PartitionsAdded]) -> Asked[PartitionsAdded]: ...


class Groups(Protocol):
    async def coordinator(self, group_id: str) -> NodeId: ...

    def offsets_partition(self, group_id: str) -> TopicPartition: ...


async def handle(
    request: AddOffsetsToTxnRequest,
    caller: Caller,
    *,
    transactions: Transactions,
    groups: Groups,
) -> AddOffsetsToTxnResponse:
    if not request.group_id:
        return AddOffsetsToTxnResponse(0, ErrorCode.INVALID_GROUP_ID)
    try:
        with caller.hold():
            await groups.coordinator(request.group_id)  # which makes the topic
            command = AddPartitions(
                transactional_id=request.transactional_id,
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
                partitions=(groups.offsets_partition(request.group_id),),
                version=VERSION_ORIGINAL,
                patience_ms=TRANSACTION_PATIENCE_MS,
            )
            asked = transactions.ask(request.transactional_id, command)
        added = await asked.answer
    except RopewalkError as error:
        return AddOffsetsToTxnResponse(0, code_for_producer(error, API.key, caller.version))
    (error_or_none,) = added.partitions
    code = ErrorCode.NONE if error_or_none is None else code_for(error_or_none)
    return AddOffsetsToTxnResponse(0, code)
