"""AlterPartitionReassignments: put replicas elsewhere, or give up doing so.

Behaviour worth knowing
    It is answered when the move has begun. ListPartitionReassignments tells what is under way; a move asked for meanwhile
    replaces the one before it. Replicas that are as they are wanted are a success.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.broker.leadership import Leadership
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(
    request: AlterPartitionReassignmentsRequest, caller: Caller, *, leadership: Leadership
) -> AlterPartitionReassignmentsResponse:
    async def reassign(topic: str, asked: ReassignablePartition) -> ReassignablePartitionResponse:
        replicas = None if asked.replicas is None else tuple(map(NodeId, asked.replicas))
        try:
            await leadership.reassign(
                topic, asked.index, replicas, may_change_factor=request.allow_replication_factor_change
            )
        except RopewalkError as error:
            return ReassignablePartitionResponse(asked.index, code_for(error), str(error))
        return ReassignablePartitionResponse(asked.index, ErrorCode.NONE, None)

    with caller.hold():
        return AlterPartitionReassignmentsResponse(
            throttle_ms=0,
            allow_replication_factor_change=request.allow_replication_factor_change,
            topics=tuple(
                [
                    ReassignableTopicResponse(
                        topic.name, tuple([await reassign(topic.name, asked) for asked in topic.partitions])
                    )
                    for topic in request.topics
                ]
            ),
        )
