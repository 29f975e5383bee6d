"""Adding and removing rules about who may do what.

Behaviour worth knowing
    Each rule of a request is checked by itself; all that can be added are one change. A rule that is there already is a success.
    What filters match is removed as one change, and every filter hears of its own matches.
    An address is written as a number. Kafka takes any text for one; a denial for a network or a name would deny nobody.
"""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from typing import Final

from ropewalk.base.errors import InvalidRequest, NotInForce, PolicyViolation, RopewalkError
from ropewalk.base.levels import ACLS_LEVEL, LEVEL_FIRST
from ropewalk.base.limits import (
    ACL_FILTERS_PER_REQUEST_MAX,
    ACL_ITEMS_PER_REQUEST_MAX,
    ACL_NAME_CHARACTERS_MAX,
    ACL_RULES_MAX,
)
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import AclAdded, AclRemoved, MetadataRecord
from ropewalk.security.access import ANY_HOST, CLUSTER_NAME, Filter, ResourceType, Rule

_CONTROL_END: Final = " "
"""The first character that is no control character."""


def decide_add_acls(
    image: Image, wanted: Sequence[Rule]
) -> tuple[list[MetadataRecord], list[RopewalkError | None]]:
    """What to write, and for each rule why it is not added; None where it is, or was before."""
    check_acls_level(image)
    if len(wanted) > ACL_ITEMS_PER_REQUEST_MAX:
        raise PolicyViolation(
            f"{len(wanted)} rules in one request, at most {ACL_ITEMS_PER_REQUEST_MAX} are added at once"
        )
    added: dict[Rule, None] = {}
    refusals: list[RopewalkError | None] = []
    for rule in wanted:
        try:
            checked = check_rule(rule)
            if checked not in image.acls and checked not in added:
                if len(image.acls) + len(added) >= ACL_RULES_MAX:
                    raise PolicyViolation(f"there are {ACL_RULES_MAX} rules, no more are allowed")
                added[checked] = None
        except RopewalkError as error:
            refusals.append(error)
        else:
            refusals.append(None)
    return [_added(rule) for rule in added], refusals


def decide_remove_acls(
    image: Image, filters: Sequence[Filter]
) -> tuple[list[MetadataRecord], list[list[Rule]]]:
    """What to write, and what each filter matched; what two match is removed once and told to both."""
    check_acls_level(image)
    if len(filters) > ACL_FILTERS_PER_REQUEST_MAX:
        raise PolicyViolation(
            f"{len(filters)} filters in one request, at most {ACL_FILTERS_PER_REQUEST_MAX} are looked for at once"
        )
    matched = [list(find(image.acls, each)) for each in filters]
    removed = dict.fromkeys(rule for rules in matched for rule in rules)
    if len(removed) > ACL_ITEMS_PER_REQUEST_MAX:
        raise PolicyViolation(
            f"the filters match {len(removed)} rules, at most {ACL_ITEMS_PER_REQUEST_MAX} are removed at once; ask for fewer"
        )
    return [_removed(rule) for rule in removed], matched


def check_rule(rule: Rule) -> Rule:
    """The rule in its one spelling, or `InvalidRequest`."""
    _check_text(rule.name, "the name of the resource")
    if rule.resource_type is ResourceType.CLUSTER and rule.name != CLUSTER_NAME:
        raise InvalidRequest(
            f"the one resource of type CLUSTER is called {CLUSTER_NAME}, not {rule.name!r:.200}"
        )
    _check_text(rule.principal, "the principal")
    kind, colon, name = rule.principal.partition(":")
    if not (kind and colon and name):
        raise InvalidRequest(f"the principal is {rule.principal!r:.200}, must be TYPE:NAME, as User:alice")
    host = _address(rule.host)
    if host is None:
        raise InvalidRequest(f"the host is {rule.host!r:.200}, must be an address such as 192.0.2.1, or *")
    return Rule(
        rule.resource_type, rule.name, rule.pattern, rule.principal, host, rule.operation, rule.permission
    )


def find(rules: Iterable[Rule], wanted: Filter) -> Iterator[Rule]:
    """Those that a filter matches, its host in whatever spelling."""
    if wanted.host is not None:
        wanted = Filter(
            wanted.resource_type,
            wanted.name,
            wanted.match,
            wanted.principal,
            _address(wanted.host) or wanted.host,
            wanted.operation,
            wanted.permission,
        )
    return (rule for rule in rules if wanted.accepts(rule))


def check_acls_level(image: Image) -> None:
    """Raise `NotInForce` where nodes of the release before could not read such rules."""
    if image.level < ACLS_LEVEL:
        raise NotInForce(
            f"rules about who may do what came with level {ACLS_LEVEL}, and level {max(image.level, LEVEL_FIRST)} is in force; "
            "`ropewalk cluster upgrade status` says what holds it back"
        )


def _check_text(text: str, what: str) -> None:
    if not text:
        raise InvalidRequest(f"{what} is empty")
    if len(text) > ACL_NAME_CHARACTERS_MAX:
        raise PolicyViolation(
            f"{what} has {len(text)} characters, at most {ACL_NAME_CHARACTERS_MAX} are allowed"
        )
    if any(character < _CONTROL_END for character in text):
        raise InvalidRequest(f"{what} is {text!r:.200}, must have no control characters")


def _address(text: str) -> str | None:
    if text == ANY_HOST:
        return text
    try:
        return str(ip_address(text))
    except ValueError:
        return None


def _added(rule: Rule) -> AclAdded:
    return AclAdded(
        rule.resource_type,
        rule.name,
        rule.pattern,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission,
    )


def _removed(rule: Rule) -> AclRemoved:
    return AclRemoved(
        rule.resource_type,
        rule.name,
        rule.pattern,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission,
    )
