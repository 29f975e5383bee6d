"""DeleteAcls: remove the rules that filters match.

Behaviour worth knowing
    What all filters match is removed in one change of the cluster; each is answered with its own matches, also with those of another.
    A filter that matches nothing is a success. A code that nobody knows refuses the whole request.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.access import Access
from ropewalk.broker.administration.acl_changes import AclChanges
from ropewalk.kafka.acl_codes import DISABLED, check_known, filter_of
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.refusals import REFUSALS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.delete_acls import (
    API,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ropewalk.wire.types import Message


async def handle(
    request: DeleteAclsRequest, caller: Caller, *, access: Access, changes: AclChanges
) -> Message:
    if not access.is_on:
        return REFUSALS[API.key](request, ErrorCode.SECURITY_DISABLED, DISABLED)
    try:
        check_known(request.filters)
        with caller.hold():
            matched = await changes.remove(
                [filter_of(each) for each in request.filters], caller.mandate(API.name)
            )
    except RopewalkError as error:
        return REFUSALS[API.key](request, code_for(error), str(error))
    return DeleteAclsResponse(
        throttle_ms=0,
        filter_results=tuple(
            DeleteAclsFilterResult(
                ErrorCode.NONE,
                None,
                tuple(
                    DeleteAclsMatchingAcl(
                        ErrorCode.NONE,
                        None,
                        rule.resource_type,
                        rule.name,
                        rule.pattern,
                        rule.principal,
                        rule.host,
                        rule.operation,
                        rule.permission,
                    )
                    for rule in rules
                ),
            )
            for rules in matched
        ),
    )
