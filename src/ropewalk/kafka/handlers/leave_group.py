"""LeaveGroup: a member goes, or an administrator removes several, also by the names of static members.

Behaviour worth knowing
    Before v3 there is one member, and its refusal is that of the whole request.
"""

from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.groups.commands import Leave, LeavingMember
from ropewalk.groups.errors import GroupError
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

_MANY_SINCE: Final = 3


async def handle(request: LeaveGroupRequest, caller: Caller, *, groups: Groups) -> LeaveGroupResponse:
    if caller.version >= _MANY_SINCE:
        leaving = tuple(LeavingMember(member.member_id, member.instance_id) for member in request.members)
    else:
        leaving = (LeavingMember(request.member_id),)
    try:
        left = await groups.ask(request.group_id, Leave(request.group_id, leaving)).answer
    except RopewalkError as error:
        return LeaveGroupResponse(error_code=code_for(error))
    if caller.version < _MANY_SINCE:
        return LeaveGroupResponse(error_code=_code(left.members[0]))
    return LeaveGroupResponse(
        members=tuple(
            MemberResponse(member.member_id, member.instance_id, _code(refusal))
            for member, refusal in zip(leaving, left.members, strict=True)
        )
    )


def _code(refusal: GroupError | None) -> ErrorCode:
    return ErrorCode.NONE if refusal is None else code_for(refusal)
