"""Heartbeat: a member is alive, and learns whether it must join again.

Behaviour worth knowing
    While the group is being read, after its coordinator has changed, nothing can be said against the member, so it is told that
    all is well, as Kafka does: there are clients that end when they hear anything about loading here.
"""

from ropewalk.base.errors import RopewalkError, ShardLoading
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.groups.commands import Heartbeat
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, caller: Caller, *, groups: Groups) -> HeartbeatResponse:
    del caller
    command = Heartbeat(request.group_id, request.generation_id, request.member_id, request.instance_id)
    try:
        await groups.ask(request.group_id, command).answer
    except ShardLoading:
        return HeartbeatResponse()
    except RopewalkError as error:
        return HeartbeatResponse(error_code=code_for(error))
    return HeartbeatResponse()
