"""DescribeAcls (key 29): who may do what, as far as a filter matches.

v2  flexible encoding
v3  users as a type of resource
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message


class DescribeAclsRequest(Message, frozen=True):
    resource_type_filter: Int8
    resource_name_filter: str | None
    pattern_type_filter: Int8
    principal_filter: str | None
    host_filter: str | None
    operation: Int8
    permission_type: Int8


class AclDescription(Message, frozen=True):
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


class DescribeAclsResource(Message, frozen=True):
    resource_type: Int8
    resource_name: str
    pattern_type: Int8
    acls: tuple[AclDescription, ...]


class DescribeAclsResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None
    resources: tuple[DescribeAclsResource, ...]


API: Final = Api(
    key=29,
    name="DescribeAcls",
    versions=range(1, 3 + 1),
    flexible_since=2,
    request=DescribeAclsRequest,
    response=DescribeAclsResponse,
)
