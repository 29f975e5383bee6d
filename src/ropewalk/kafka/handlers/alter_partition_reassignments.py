"""AlterPartitionReassignments: put replicas elsewhere, or give up doing so.

Behaviour worth knowing
    It is answered when the move has begun. ListPartitionReassignments tells what is under way; a move asked for meanwhile
    replaces the one before it. Replicas that are as they are wanted are a success.
    Whoever asks, with fields of our own, has the cluster work out the moves by the load that its brokers carry; or is only told
    which these would be, where the load is, and whether another node is wanted.
"""

from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.broker.administration.balancing import Balancing
from ropewalk.broker.administration.leadership import Leadership
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.alter_partition_reassignments import (
    API,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    BalanceChange,
    BalanceShare,
    BusyPartition,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

_BUSIEST_COUNT: Final = 20


async def handle(
    request: AlterPartitionReassignmentsRequest,
    caller: Caller,
    *,
    leadership: Leadership,
    balancing: Balancing,
) -> AlterPartitionReassignmentsResponse:
    mandate = caller.mandate(API.name)
    if request.balance:
        with caller.hold():
            return await _balance(request, balancing, mandate)

    async def reassign(topic: str, asked: ReassignablePartition) -> ReassignablePartitionResponse:
        replicas = None if asked.replicas is None else tuple(map(NodeId, asked.replicas))
        try:
            await leadership.reassign(
                topic,
                asked.index,
                replicas,
                mandate,
                may_change_factor=request.allow_replication_factor_change,
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


async def _balance(
    request: AlterPartitionReassignmentsRequest, balancing: Balancing, mandate: Mandate | None
) -> AlterPartitionReassignmentsResponse:
    try:
        plan = balancing.plan()
        busiest = balancing.hot_partitions(_BUSIEST_COUNT)
        wanted = balancing.wanted
        if not request.validate_only:
            await balancing.balance(plan, mandate)
    except RopewalkError as error:
        return AlterPartitionReassignmentsResponse(
            throttle_ms=0, error_code=code_for(error), error_message=str(error)
        )
    return AlterPartitionReassignmentsResponse(
        throttle_ms=0,
        changes=tuple(
            BalanceChange(change.topic_name, change.index, change.before, change.after)
            for change in plan.changes
        ),
        shares=tuple(
            BalanceShare(node_id, share, plan.load_after[node_id])
            for node_id, share in sorted(plan.load_before.items())
        ),
        busiest=tuple(
            BusyPartition(
                topic_name=hot.topic_name,
                index=hot.index,
                leader_id=-1 if hot.leader is None else hot.leader,
                bytes_in=hot.bytes_in,
                bytes_out=hot.bytes_out,
                share=hot.share,
            )
            for hot in busiest
        ),
        nodes_wanted=wanted,
    )
