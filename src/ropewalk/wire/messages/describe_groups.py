"""DescribeGroups (key 15): state, protocol and members of classic groups.

v1  throttle_ms in the response
v3  authorized operations, on request
v4  instance_id of members
v5  flexible encoding
v6  an unknown group is an error, with a message
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, since


class DescribeGroupsRequest(Message, frozen=True):
    groups: tuple[str, ...]
    include_authorized_operations: Annotated[bool, since(3)] = False


class DescribedGroupMember(Message, frozen=True):
    member_id: str
    instance_id: Annotated[str | None, since(4)] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Message, frozen=True):
    error_code: Int16
    error_message: Annotated[str | None, since(6)] = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: Annotated[Int32, since(3)] = -(2**31)


class DescribeGroupsResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(1)] = 0
    groups: tuple[DescribedGroup, ...] = ()


API: Final = Api(
    key=15,
    name="DescribeGroups",
    versions=range(0, 6 + 1),
    flexible_since=5,
    request=DescribeGroupsRequest,
    response=DescribeGroupsResponse,
)
