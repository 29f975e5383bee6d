"""ConsumerGroupHeartbeat: all that a member of a group with server-side assignment ever sends (KIP-848).

Behaviour worth knowing
    The answer comes at once, with what the member has if that has changed: nobody is waited for.
    -1 as the rebalance timeout, and null elsewhere, mean "as before".
    v0 lets the broker make the member id; from v1 on the client does.
"""

from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicId
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.groups.assignors.model import Share
from ropewalk.groups.commands import ConsumerHeartbeat
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.rights.rights import Rights
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

_OWN_ID_SINCE: Final = 1
_AS_BEFORE: Final = -1


async def handle(
    request: ConsumerGroupHeartbeatRequest, caller: Caller, *, groups: Groups, rights: Rights | None = None
) -> ConsumerGroupHeartbeatResponse:
    timeout_ms = request.rebalance_timeout_ms
    command = ConsumerHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=None if timeout_ms == _AS_BEFORE else timeout_ms,
        topics=request.subscribed_topic_names,
        pattern=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=_share(request.topic_partitions),
        client_id=caller.client_id or "",
        client_host=f"/{caller.host}",
        makes_own_id=caller.version >= _OWN_ID_SINCE,
        may_describe=None if rights is None else rights.describing(caller),
    )
    try:
        taken = await groups.ask(request.group_id, command).answer
    except RopewalkError as error:
        return ConsumerGroupHeartbeatResponse(0, code_for(error), str(error))
    return ConsumerGroupHeartbeatResponse(
        throttle_ms=0,
        error_code=ErrorCode.NONE,
        member_id=taken.member_id,
        member_epoch=taken.epoch,
        heartbeat_interval_ms=taken.interval_ms,
        assignment=None if taken.assigned is None else Assignment(_by_topic(taken.assigned)),
    )


def _share(owned: tuple[TopicPartitions, ...] | None) -> Share | None:
    if owned is None:
        return None
    return frozenset((TopicId(topic.topic_id), index) for topic in owned for index in topic.partitions)


def _by_topic(share: Share) -> tuple[TopicPartitions, ...]:
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, index in sorted(share):
        by_topic.setdefault(topic_id, []).append(index)
    return tuple(TopicPartitions(topic_id, tuple(indexes)) for topic_id, indexes in by_topic.items())
