"""JoinGroup: become a member, or take part in the next generation.

Behaviour worth knowing
    The answer comes when the next generation begins, which may take as long as the slowest member's rebalance timeout.
    Later requests of the connection take effect meanwhile; their answers wait behind this one.
    From v4 on a client without a member id is given one and has to ask again (KIP-394); from v9 on a leader may be
    told that it need not assign (KIP-814).
"""

from functools import partial
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.groups.commands import Join, Protocol
from ropewalk.groups.errors import MemberIdRequired
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.rights.rights import Rights
from ropewalk.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

_MEMBER_ID_REQUIRED_SINCE: Final = 4
_NULL_PROTOCOL_SINCE: Final = 7
_SKIP_ASSIGNMENT_SINCE: Final = 9


async def handle(
    request: JoinGroupRequest, caller: Caller, *, groups: Groups, rights: Rights | None = None
) -> JoinGroupResponse:
    command = Join(
        group_id=request.group_id,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(Protocol(each.name, bytes(each.metadata)) for each in request.protocols),
        member_id=request.member_id,
        instance_id=request.instance_id,
        client_id=caller.client_id or "",
        client_host=f"/{caller.host}",
        requires_known_member=caller.version >= _MEMBER_ID_REQUIRED_SINCE,
        understands_skip_assignment=caller.version >= _SKIP_ASSIGNMENT_SINCE,
        may_describe=None if rights is None else rights.describing(caller),
    )
    try:
        asked = groups.ask(request.group_id, command)
        with caller.watched(partial(groups.forget, request.group_id, asked.token)):
            joined = await asked.answer
    except RopewalkError as error:
        return _refused(error, request, caller.version)
    return JoinGroupResponse(
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader_id,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=tuple(
            JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata)
            for member in joined.members
        ),
    )


def _refused(error: RopewalkError, request: JoinGroupRequest, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code_for(error),
        protocol_name=None if version >= _NULL_PROTOCOL_SINCE else "",
        member_id=error.member_id if isinstance(error, MemberIdRequired) else request.member_id,
    )
