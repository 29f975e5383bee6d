"""DeleteGroups (key 42): empty groups and their offsets go.

v2  flexible encoding
v3  error_message of each group
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, since


class DeleteGroupsRequest(Message, frozen=True):
    groups_names: tuple[str, ...]


class DeletableGroupResult(Message, frozen=True):
    group_id: str
    error_code: Int16
    error_message: Annotated[str | None, since(3)] = None


class DeleteGroupsResponse(Message, frozen=True):
    throttle_ms: Int32
    results: tuple[DeletableGroupResult, ...]


API: Final = Api(
    key=42,
    name="DeleteGroups",
    versions=range(0, 3 + 1),
    flexible_since=2,
    request=DeleteGroupsRequest,
    response=DeleteGroupsResponse,
)
