"""LeaveGroup (key 13): a member goes, or an administrator removes several.

v1  throttle_ms in the response
v3  many members at once, also by instance id: `members` instead of `member_id`
v4  flexible encoding
v5  reason
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, since, until


class MemberIdentity(Message, frozen=True):
    member_id: str
    instance_id: str | None = None
    reason: Annotated[str | None, since(5)] = None


class LeaveGroupRequest(Message, frozen=True):
    group_id: str
    member_id: Annotated[str, until(2)] = ""
    members: Annotated[tuple[MemberIdentity, ...], since(3)] = ()


class MemberResponse(Message, frozen=True):
    member_id: str
    instance_id: str | None
    error_code: Int16


class LeaveGroupResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    members: Annotated[tuple[MemberResponse, ...], since(3)] = ()


API: Final = Api(
    key=13,
    name="LeaveGroup",
    versions=range(0, 5 + 1),
    flexible_since=4,
    request=LeaveGroupRequest,
    response=LeaveGroupResponse,
)
