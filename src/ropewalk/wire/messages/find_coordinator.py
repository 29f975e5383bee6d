"""FindCoordinator (key 10): the broker that looks after a group, a transactional id or a share partition.

v1  key_type; throttle_ms and error_message in the response
v3  flexible encoding
v4  many keys at once: `coordinator_keys` instead of `key`, `coordinators` instead of a single answer
v5  errors may say that a transaction can be aborted
v6  share groups
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message, since, until


class FindCoordinatorRequest(Message, frozen=True):
    key: Annotated[str, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    coordinator_keys: Annotated[tuple[str, ...], since(4)] = ()


class Coordinator(Message, frozen=True):
    key: str
    node_id: Int32
    host: str
    port: Int32
    error_code: Int16 = 0
    error_message: str | None = None


class FindCoordinatorResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(1)] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[str | None, since(1, until=3)] = None
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[str, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[tuple[Coordinator, ...], since(4)] = ()


API: Final = Api(
    key=10,
    name="FindCoordinator",
    versions=range(0, 6 + 1),
    flexible_since=3,
    request=FindCoordinatorRequest,
    response=FindCoordinatorResponse,
)
