"""DescribeGroups: state, protocol and members of groups.

Behaviour worth knowing
    A group that does not exist is `Dead` and no error, except from v6 on.
    Where nothing is checked, every operation that exists is allowed to whoever asks; else a guard says which are (`kafka/rights`).
"""

from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.broker.hosting.shard import Asked
from ropewalk.groups import commands
from ropewalk.groups.answers import DescribedGroup as Description
from ropewalk.groups.answers import GroupsDescribed
from ropewalk.groups.errors import UnknownGroup
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.operations import GROUP_OPERATIONS, OPERATIONS_NOT_ASKED
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_UNKNOWN_IS_ERROR_SINCE: Final = 6
_DEAD: Final = "Dead"


async def handle(request: DescribeGroupsRequest, caller: Caller, *, groups: Groups) -> DescribeGroupsResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else OPERATIONS_NOT_ASKED
    described: list[DescribedGroup] = []
    for group_id in dict.fromkeys(request.groups):
        await caller.next_item()
        described.append(await _describe(group_id, _ask(group_id, groups), caller.version, operations))
    return DescribeGroupsResponse(groups=tuple(described))


def _ask(group_id: str, groups: Groups) -> Asked[GroupsDescribed] | RopewalkError:
    try:
        return groups.ask(group_id, commands.DescribeGroups((group_id,)))
    except RopewalkError as error:
        return error


async def _describe(
    group_id: str, asked: Asked[GroupsDescribed] | RopewalkError, version: int, operations: int
) -> DescribedGroup:
    if isinstance(asked, RopewalkError):
        return _refused(group_id, asked, version)
    try:
        answer = await asked.answer
    except RopewalkError as error:
        return _refused(group_id, error, version)
    (group,) = answer.groups
    if not isinstance(group, Description):
        return _refused(group_id, group, version)
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ),
        authorized_operations=operations,
    )


def _refused(group_id: str, error: RopewalkError, version: int) -> DescribedGroup:
    if not isinstance(error, UnknownGroup):
        return DescribedGroup(code_for(error), str(error), group_id)
    if version < _UNKNOWN_IS_ERROR_SINCE:
        return DescribedGroup(ErrorCode.NONE, None, group_id, _DEAD)
    return DescribedGroup(code_for(error), str(error), group_id, _DEAD)
