"""ListGroups: the groups that this broker looks after.

Behaviour worth knowing
    Filters are compared without regard to case; a state or a type that no group can have matches none.
    While a shard is being loaded the answer says so instead of leaving groups out.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.groups import commands
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


async def handle(request: ListGroupsRequest, caller: Caller, *, groups: Groups) -> ListGroupsResponse:
    del caller
    listed: list[ListedGroup] = []
    try:
        for asked in groups.ask_all(commands.ListGroups(request.states_filter, request.types_filter)):
            answer = await asked.answer
            listed += [
                ListedGroup(group.group_id, group.protocol_type, group.state.value, group.group_type.value)
                for group in answer.groups
            ]
    except RopewalkError as error:
        return ListGroupsResponse(error_code=code_for(error))
    return ListGroupsResponse(groups=tuple(listed))
