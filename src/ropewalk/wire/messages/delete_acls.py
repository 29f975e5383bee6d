"""DeleteAcls (key 31): remove the rules that filters match.

v2  flexible encoding
v3  users as a type of resource
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message


class DeleteAclsFilter(Message, frozen=True):
    resource_type_filter: Int8
    resource_name_filter: str | None
    pattern_type_filter: Int8
    principal_filter: str | None
    host_filter: str | None
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Message, frozen=True):
    filters: tuple[DeleteAclsFilter, ...]


class DeleteAclsMatchingAcl(Message, frozen=True):
    error_code: Int16
    error_message: str | None
    resource_type: Int8
    resource_name: str
    pattern_type: Int8
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


class DeleteAclsFilterResult(Message, frozen=True):
    error_code: Int16
    error_message: str | None
    matching_acls: tuple[DeleteAclsMatchingAcl, ...]


class DeleteAclsResponse(Message, frozen=True):
    throttle_ms: Int32
    filter_results: tuple[DeleteAclsFilterResult, ...]


API: Final = Api(
    key=31,
    name="DeleteAcls",
    versions=range(1, 3 + 1),
    flexible_since=2,
    request=DeleteAclsRequest,
    response=DeleteAclsResponse,
)
