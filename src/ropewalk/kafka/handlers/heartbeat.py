"""Heartbeat: a member is alive, and learns whether it must join again."""

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.groups import Groups
from ropewalk.groups.commands import Heartbeat
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, caller: Caller, *, groups: Groups) -> HeartbeatResponse:
    del caller
    command = Heartbeat(request.group_id, request.generation_id, request.member_id, request.instance_id)
    try:
        await groups.ask(request.group_id, command).answer
    except RopewalkError as error:
        return HeartbeatResponse(error_code=code_for(error))
    return HeartbeatResponse()
