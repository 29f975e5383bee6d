"""SyncGroup: every member asks for its assignment, and the leader brings everyone's.

Behaviour worth knowing
    The answer waits until the leader's assignments are durable.
    While the group is being read, after its coordinator has changed, the rebalance that the member is in is lost, and it is told to
    join again, as Kafka does: there are clients that do not expect to hear about loading here.
"""

from functools import partial

from ropewalk.base.errors import RopewalkError, ShardLoading
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.groups.commands import Assignment, Sync
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def handle(request: SyncGroupRequest, caller: Caller, *, groups: Groups) -> SyncGroupResponse:
    command = Sync(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=tuple(Assignment(each.member_id, bytes(each.assignment)) for each in request.assignments),
    )
    try:
        asked = groups.ask(request.group_id, command)
        with caller.watched(partial(groups.forget, request.group_id, asked.token)):
            synced = await asked.answer
    except ShardLoading:
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    except RopewalkError as error:
        return SyncGroupResponse(error_code=code_for(error))
    return SyncGroupResponse(
        protocol_type=synced.protocol_type, protocol_name=synced.protocol, assignment=synced.assignment
    )
