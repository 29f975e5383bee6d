"""CreateAcls (key 30): add rules about who may do what.

v2  flexible encoding
v3  users as a type of resource
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message


class AclCreation(Message, frozen=True):
    resource_type: Int8
    resource_name: str
    resource_pattern_type: Int8
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Message, frozen=True):
    creations: tuple[AclCreation, ...]


class AclCreationResult(Message, frozen=True):
    error_code: Int16
    error_message: str | None


class CreateAclsResponse(Message, frozen=True):
    throttle_ms: Int32
    results: tuple[AclCreationResult, ...]


API: Final = Api(
    key=30,
    name="CreateAcls",
    versions=range(1, 3 + 1),
    flexible_since=2,
    request=CreateAclsRequest,
    response=CreateAclsResponse,
)
