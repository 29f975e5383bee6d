"""CreateAcls: add rules about who may do what.

Behaviour worth knowing
    Each rule is checked by itself, and those that can be added are one change of the cluster. Adding one that is there is a success.
    A code that nobody knows refuses the whole request.
"""

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.broker.access import Access
from ropewalk.broker.administration.acl_changes import AclChanges
from ropewalk.kafka.acl_codes import DISABLED, check_known, rule_of
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.refusals import REFUSALS
from ropewalk.security.access import Rule
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.create_acls import (
    API,
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from ropewalk.wire.types import Message


async def handle(
    request: CreateAclsRequest, caller: Caller, *, access: Access, changes: AclChanges
) -> Message:
    if not access.is_on:
        return REFUSALS[API.key](request, ErrorCode.SECURITY_DISABLED, DISABLED)
    rules = [_rule(creation) for creation in request.creations]
    try:
        check_known(request.creations)
        with caller.hold():
            refusals = iter(
                await changes.add(
                    [rule for rule in rules if isinstance(rule, Rule)], caller.mandate(API.name)
                )
            )
    except RopewalkError as error:
        return REFUSALS[API.key](request, code_for(error), str(error))
    outcomes = [next(refusals) if isinstance(rule, Rule) else rule for rule in rules]
    return CreateAclsResponse(
        throttle_ms=0,
        results=tuple(
            AclCreationResult(ErrorCode.NONE, None)
            if error is None
            else AclCreationResult(code_for(error), str(error))
            for error in outcomes
        ),
    )


def _rule(creation: AclCreation) -> Rule | InvalidRequest:
    try:
        return rule_of(creation)
    except InvalidRequest as error:
        return error
