"""AlterPartition: a leader asks for other sets of replicas in sync, each partition by itself."""

from collections.abc import Sequence
from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.peer.controller_codes import code_for
from ropewalk.kafka.peer.identity import check_identity
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer import alter_partition
from ropewalk.wire.peer.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionAltered,
)


class Alterations(Protocol):
    async def alter_partitions(
        self, node_id: NodeId, broker_epoch: int, alterations: Sequence[PartitionAlteration]
    ) -> Sequence[AlteredPartition]:
        """Returns when what was changed is committed. Raises where the request as a whole is refused."""


async def handle(
    request: AlterPartitionRequest, caller: Caller, *, alterations: Alterations
) -> AlterPartitionResponse:
    try:
        check_identity(caller, request.node_id)
        altered = await alterations.alter_partitions(
            NodeId(request.node_id), request.broker_epoch, [_alteration(each) for each in request.partitions]
        )
    except RopewalkError as error:
        return AlterPartitionResponse(code_for(error), str(error))
    return AlterPartitionResponse(ErrorCode.NONE, None, tuple(map(_altered, altered)))


def _alteration(asked: alter_partition.PartitionAlteration) -> PartitionAlteration:
    return PartitionAlteration(
        topic_id=TopicId(bytes(asked.topic_id)),
        index=asked.index,
        leader_epoch=LeaderEpoch(asked.leader_epoch),
        partition_epoch=asked.partition_epoch,
        isr=[(NodeId(member.node_id), member.broker_epoch) for member in asked.isr],
        start_offset=asked.start_offset,
    )


def _altered(altered: AlteredPartition) -> PartitionAltered:
    partition = altered.outcome
    if isinstance(partition, RopewalkError):
        return PartitionAltered(altered.topic_id, altered.index, code_for(partition))
    return PartitionAltered(
        altered.topic_id,
        altered.index,
        ErrorCode.NONE,
        -1 if partition.leader is None else partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.isr,
    )
