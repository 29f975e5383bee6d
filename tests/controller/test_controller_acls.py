"""Adding and removing rules about rights: what is refused and why, what happens once, and what filters take away."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import InvalidRequest, NotInForce, PolicyViolation, RopewalkError
from ropewalk.base.levels import ACLS_LEVEL
from ropewalk.controller import acls
from ropewalk.controller.acls import decide_add_acls, decide_remove_acls, find
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import LevelChanged
from ropewalk.security.access import (
    Filter,
    Match,
    Operation,
    Pattern,
    Permission,
    ResourceType,
    Rule,
)
from tests.security import rules as model


def rule(
    name: str = "orders",
    *,
    resource_type: ResourceType = ResourceType.TOPIC,
    principal: str = "User:alice",
    host: str = "*",
    pattern: Pattern = Pattern.LITERAL,
    operation: Operation = Operation.READ,
) -> Rule:
    return Rule(resource_type, name, pattern, principal, host, operation, Permission.ALLOW)


def image_with(*rules: Rule) -> Image:
    image = Image()
    image.apply(LevelChanged(ACLS_LEVEL))
    add(image, rules)
    return image


def add(image: Image, rules: Sequence[Rule]) -> list[RopewalkError | None]:
    records, refusals = decide_add_acls(image, rules)
    image.apply_all(records)
    return refusals


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        pytest.param(rule(""), InvalidRequest, id="no name"),
        pytest.param(rule("a\x00"), InvalidRequest, id="a control character in the name"),
        pytest.param(rule("n" * 1025), PolicyViolation, id="a long name"),
        pytest.param(rule("other", resource_type=ResourceType.CLUSTER), InvalidRequest, id="another cluster"),
        pytest.param(rule("*", resource_type=ResourceType.CLUSTER), InvalidRequest, id="all clusters"),
        pytest.param(rule(principal="alice"), InvalidRequest, id="a principal without a type"),
        pytest.param(rule(principal="User:"), InvalidRequest, id="a principal without a name"),
        pytest.param(rule(principal=":alice"), InvalidRequest, id="a principal with an empty type"),
        pytest.param(rule(principal=""), InvalidRequest, id="no principal"),
        pytest.param(rule(host="10.0.0.0/8"), InvalidRequest, id="a network"),
        pytest.param(rule(host="localhost"), InvalidRequest, id="a host by name"),
        pytest.param(rule(host=""), InvalidRequest, id="no host"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_and_the_others_are_added(
    refused: Rule, error: type[RopewalkError]
) -> None:
    image = image_with()
    before, after = add(image, [refused, rule("sound")])
    assert isinstance(before, error)
    assert after is None
    assert list(image.acls) == [rule("sound")]


def test_a_rule_is_added_once_however_often_it_is_asked_for() -> None:
    image = image_with()
    records, refusals = decide_add_acls(image, [rule(), rule()])
    assert len(records) == 1
    assert refusals == [None, None]
    image.apply_all(records)
    assert decide_add_acls(image, [rule()]) == ([], [None])


def test_an_address_is_compared_in_one_spelling() -> None:
    image = image_with(rule(host="::0001"))
    assert [each.host for each in image.acls] == ["::1"]
    assert list(find(image.acls, Filter(host="0:0::1"))) == list(image.acls)


def test_rules_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "ACL_RULES_MAX", 2)
    image = image_with(rule("a"))
    added, again, refused = add(image, [rule("b"), rule("a"), rule("c")])
    assert (added, again) == (None, None)
    assert isinstance(refused, PolicyViolation)
    assert "2" in str(refused)
    monkeypatch.setattr(acls, "ACL_ITEMS_PER_REQUEST_MAX", 1)
    with pytest.raises(PolicyViolation, match="2 rules in one request, at most 1"):
        decide_add_acls(image, [rule("a"), rule("b")])
    with pytest.raises(PolicyViolation, match="match 2 rules, at most 1"):
        decide_remove_acls(image, [Filter()])
    monkeypatch.setattr(acls, "ACL_FILTERS_PER_REQUEST_MAX", 1)
    with pytest.raises(PolicyViolation, match="2 filters in one request, at most 1"):
        decide_remove_acls(image, [Filter(), Filter()])


def test_there_are_no_rules_before_their_level() -> None:
    for decide in (
        lambda image: decide_add_acls(image, [rule()]),
        lambda image: decide_remove_acls(image, []),
    ):
        with pytest.raises(NotInForce, match=f"came with level {ACLS_LEVEL}"):
            decide(Image())


def test_removing_one_rule_of_a_resource_leaves_the_others() -> None:
    kept = (rule(operation=Operation.WRITE), rule(principal="User:bob"), rule(pattern=Pattern.PREFIXED))
    image = image_with(rule(), *kept)
    wanted = Filter(
        ResourceType.TOPIC, "orders", Match.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW
    )
    records, matched = decide_remove_acls(image, [wanted])
    image.apply_all(records)
    assert matched == [[rule()]]
    assert tuple(image.acls) == kept


@given(st.lists(model.rules, max_size=12), st.lists(model.filters, max_size=3))
def test_deletion_removes_what_its_filters_describe_and_tells_each_of_its_own(
    known: list[Rule], filters: list[Filter]
) -> None:
    image = image_with(*known)
    before = list(image.acls)
    expected = [[each for each in before if matches(wanted, each)] for wanted in filters]
    records, matched = decide_remove_acls(image, filters)
    image.apply_all(records)
    assert matched == expected
    assert list(image.acls) == [each for each in before if not any(each in some for some in expected)]


def matches(wanted: Filter, rule: Rule) -> bool:
    """Kafka's AclBindingFilter, written another way."""
    for asked, has in (
        (wanted.resource_type, rule.resource_type),
        (wanted.principal, rule.principal),
        (wanted.host, rule.host),
        (wanted.operation, rule.operation),
        (wanted.permission, rule.permission),
    ):
        if asked is not None and asked != has:
            return False
    if wanted.match in (Match.LITERAL, Match.PREFIXED) and wanted.match.name != rule.pattern.name:
        return False
    if wanted.name is None or wanted.name == rule.name:
        return True
    if wanted.match is not Match.MATCH:
        return False
    if rule.pattern is Pattern.LITERAL:
        return rule.name == "*"
    return wanted.name.startswith(rule.name)
