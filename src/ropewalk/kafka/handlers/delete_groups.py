"""DeleteGroups: groups without members go, with their offsets."""

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.broker.hosting.shard import Asked
from ropewalk.groups import commands
from ropewalk.groups.answers import GroupsDeleted
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(request: DeleteGroupsRequest, caller: Caller, *, groups: Groups) -> DeleteGroupsResponse:
    del caller
    asked = [_ask(group_id, groups) for group_id in request.groups_names]
    return DeleteGroupsResponse(
        throttle_ms=0,
        results=tuple(
            [
                await _result(group_id, each)
                for group_id, each in zip(request.groups_names, asked, strict=True)
            ]
        ),
    )


def _ask(group_id: str, groups: Groups) -> Asked[GroupsDeleted] | RopewalkError:
    try:
        return groups.ask(group_id, commands.DeleteGroups((group_id,)))
    except RopewalkError as error:
        return error


async def _result(group_id: str, asked: Asked[GroupsDeleted] | RopewalkError) -> DeletableGroupResult:
    if isinstance(asked, RopewalkError):
        return _refused(group_id, asked)
    try:
        answer = await asked.answer
    except RopewalkError as error:
        return _refused(group_id, error)
    (refusal,) = answer.groups
    if refusal is not None:
        return _refused(group_id, refusal)
    return DeletableGroupResult(group_id, ErrorCode.NONE)


def _refused(group_id: str, error: RopewalkError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id, code_for(error), str(error))
