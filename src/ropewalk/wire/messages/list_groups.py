"""ListGroups (key 16): the groups that this broker coordinates.

v1  throttle_ms in the response
v3  flexible encoding
v4  states: as a filter and in the answer
v5  types: as a filter and in the answer
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, since


class ListGroupsRequest(Message, frozen=True):
    states_filter: Annotated[tuple[str, ...], since(4)] = ()
    types_filter: Annotated[tuple[str, ...], since(5)] = ()


class ListedGroup(Message, frozen=True):
    group_id: str
    protocol_type: str
    group_state: Annotated[str, since(4)] = ""
    group_type: Annotated[str, since(5)] = ""


class ListGroupsResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    groups: tuple[ListedGroup, ...] = ()


API: Final = Api(
    key=16,
    name="ListGroups",
    versions=range(0, 5 + 1),
    flexible_since=3,
    request=ListGroupsRequest,
    response=ListGroupsResponse,
)
