"""DescribeAcls: there is no authorizer, and tools that find SECURITY_DISABLED hide what has to do with one."""

from ropewalk.kafka.caller import Caller
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


async def handle(request: DescribeAclsRequest, caller: Caller) -> DescribeAclsResponse:
    del request, caller
    return DescribeAclsResponse(
        throttle_ms=0,
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message="this node has no authorizer",
        resources=(),
    )
