"""SyncGroup (key 14): the leader of a classic group hands in the assignments, every member gets its own.

v1  throttle_ms in the response
v3  instance_id, for static members
v4  flexible encoding
v5  protocol_type and protocol_name, in both directions
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, since


class SyncGroupRequestAssignment(Message, frozen=True):
    member_id: str
    assignment: bytes


class SyncGroupRequest(Message, frozen=True):
    group_id: str
    generation_id: Int32
    member_id: str
    instance_id: Annotated[str | None, since(3)] = None
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


class SyncGroupResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    assignment: bytes = b""


API: Final = Api(
    key=14,
    name="SyncGroup",
    versions=range(0, 5 + 1),
    flexible_since=4,
    request=SyncGroupRequest,
    response=SyncGroupResponse,
)
