"""DescribeAcls: the rules about who may do what, as far as a filter matches.

Behaviour worth knowing
    Where nothing is checked the answer is SECURITY_DISABLED, and tools that find it hide what has to do with rules.
    Rules about one resource are told together, resources in the order in which they were first named.
"""

from ropewalk.base.errors import InvalidRequest
from ropewalk.base.limits import ACL_RULES_PER_TURN
from ropewalk.broker.access import Access
from ropewalk.controller.acls import find
from ropewalk.kafka.acl_codes import DISABLED, check_known, filter_of
from ropewalk.kafka.caller import Caller
from ropewalk.metadata.image import Image
from ropewalk.runtime.steps import Pace
from ropewalk.security.access import Pattern, ResourceType, Rule
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


async def handle(
    request: DescribeAclsRequest, caller: Caller, *, access: Access, image: Image
) -> DescribeAclsResponse:
    if not access.is_on:
        return _refused(ErrorCode.SECURITY_DISABLED, DISABLED)
    try:
        check_known([request])
    except InvalidRequest as error:
        return _refused(ErrorCode.INVALID_REQUEST, str(error))
    with caller.hold():
        found = await _find(request, image)
    return DescribeAclsResponse(
        throttle_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        resources=tuple(
            DescribeAclsResource(resource_type, name, pattern, tuple(described))
            for (resource_type, name, pattern), described in found.items()
        ),
    )


async def _find(
    request: DescribeAclsRequest, image: Image
) -> dict[tuple[ResourceType, str, Pattern], list[AclDescription]]:
    wanted = filter_of(request)
    known: list[Rule] = list(image.acls)
    pace = Pace(ACL_RULES_PER_TURN)
    found: dict[tuple[ResourceType, str, Pattern], list[AclDescription]] = {}
    for start in range(0, len(known), ACL_RULES_PER_TURN):
        part = known[start : start + ACL_RULES_PER_TURN]
        await pace.next(len(part))
        for rule in find(part, wanted):
            description = AclDescription(rule.principal, rule.host, rule.operation, rule.permission)
            found.setdefault((rule.resource_type, rule.name, rule.pattern), []).append(description)
    return found


def _refused(code: ErrorCode, message: str) -> DescribeAclsResponse:
    return DescribeAclsResponse(throttle_ms=0, error_code=code, error_message=message, resources=())
