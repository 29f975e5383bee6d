"""Rules and filters as Kafka's ACL requests spell them.

Behaviour worth knowing
    A code that nobody knows makes the whole request invalid, as in Kafka; ANY and MATCH in a rule that is to be added only that rule.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, TypeVar

from ropewalk.base.errors import InvalidRequest
from ropewalk.security.access import Filter, Match, Operation, Pattern, Permission, ResourceType, Rule
from ropewalk.wire.messages.create_acls import AclCreation
from ropewalk.wire.messages.delete_acls import DeleteAclsFilter
from ropewalk.wire.messages.describe_acls import DescribeAclsRequest

C = TypeVar("C", bound=IntEnum)

DISABLED: Final = "this node has no authorizer"
_ANY: Final = 1


def check_known(items: Iterable[AclCreation | DeleteAclsFilter | DescribeAclsRequest]) -> None:
    """Raise `InvalidRequest` for a code that nobody knows."""
    for item in items:
        if isinstance(item, AclCreation):
            resource_type, pattern = item.resource_type, item.resource_pattern_type
        else:
            resource_type, pattern = item.resource_type_filter, item.pattern_type_filter
        for what, code, known in (
            ("type of resource", resource_type, ResourceType),
            ("kind of pattern", pattern, Match),
            ("operation", item.operation, Operation),
            ("permission", item.permission_type, Permission),
        ):
            if code != _ANY and code not in list(known):
                raise InvalidRequest(f"there is no {what} {code}")


def rule_of(creation: AclCreation) -> Rule:
    """Raises `InvalidRequest` for what can only be looked for."""
    return Rule(
        _concrete(ResourceType, creation.resource_type, "type of resource"),
        creation.resource_name,
        _concrete(Pattern, creation.resource_pattern_type, "kind of pattern"),
        creation.principal,
        creation.host,
        _concrete(Operation, creation.operation, "operation"),
        _concrete(Permission, creation.permission_type, "permission"),
    )


def filter_of(asked: DeleteAclsFilter | DescribeAclsRequest) -> Filter:
    return Filter(
        None if asked.resource_type_filter == _ANY else ResourceType(asked.resource_type_filter),
        asked.resource_name_filter,
        Match(asked.pattern_type_filter),
        asked.principal_filter,
        asked.host_filter,
        None if asked.operation == _ANY else Operation(asked.operation),
        None if asked.permission_type == _ANY else Permission(asked.permission_type),
    )


def _concrete(codes: type[C], code: int, what: str) -> C:
    try:
        return codes(code)
    except ValueError:
        raise InvalidRequest(f"a rule must name its {what}; {code} can only be looked for") from None
