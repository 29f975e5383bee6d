"""JoinGroup (key 11): become a member of a classic group, or say that one still is while it rebalances.

v1  rebalance_timeout_ms
v2  throttle_ms in the response
v4  a member without an id is given one and must ask again
v5  instance_id, for static members
v6  flexible encoding
v7  protocol_type in the response; protocol_name may be null
v8  reason
v9  skip_assignment in the response
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, nullable, since


class JoinGroupRequestProtocol(Message, frozen=True):
    name: str
    metadata: bytes


class JoinGroupRequest(Message, frozen=True):
    group_id: str
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, since(1)] = -1
    member_id: str = ""
    instance_id: Annotated[str | None, since(5)] = None
    protocol_type: str = ""
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    reason: Annotated[str | None, since(8)] = None


class JoinGroupResponseMember(Message, frozen=True):
    member_id: str
    instance_id: Annotated[str | None, since(5)] = None
    metadata: bytes = b""


class JoinGroupResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(2)] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, since(7)] = None
    protocol_name: Annotated[str | None, nullable(since=7)] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, since(9)] = False
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()


API: Final = Api(
    key=11,
    name="JoinGroup",
    versions=range(0, 9 + 1),
    flexible_since=6,
    request=JoinGroupRequest,
    response=JoinGroupResponse,
)
