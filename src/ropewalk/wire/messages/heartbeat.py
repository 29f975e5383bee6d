"""Heartbeat (key 12): a group member says it is alive and learns whether it must rejoin.

v1  throttle_ms in the response
v3  instance_id, for static members
v4  flexible encoding
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, since


class HeartbeatRequest(Message, frozen=True):
    group_id: str
    generation_id: Int32
    member_id: str
    instance_id: Annotated[str | None, since(3)] = None


class HeartbeatResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0


API: Final = Api(
    key=12,
    name="Heartbeat",
    versions=range(0, 4 + 1),
    flexible_since=4,
    request=HeartbeatRequest,
    response=HeartbeatResponse,
)
