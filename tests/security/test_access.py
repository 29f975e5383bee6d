"""Decisions about rights: the index against a plain model, and the examples that are easily got wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base import limits
from ropewalk.security import access
from ropewalk.security.access import (
    Answers,
    Asker,
    Operation,
    Pattern,
    Permission,
    Policy,
    Reason,
    ResourceType,
    Rule,
    Rules,
    allows_any,
    decide,
)
from tests.security import rules as model

ALICE = Asker(("User:alice",), "10.0.0.1")
TOPIC = ResourceType.TOPIC
CLOSED = Policy()
OPEN = Policy(allows_unruled=True)


def rule(
    name: str,
    operation: Operation = Operation.READ,
    *,
    principal: str = "User:alice",
    host: str = "*",
    pattern: Pattern = Pattern.LITERAL,
    permission: Permission = Permission.ALLOW,
) -> Rule:
    return Rule(TOPIC, name, pattern, principal, host, operation, permission)


def rules_of(*known: Rule) -> Rules:
    rules = Rules()
    for each in known:
        rules.add(each)
    return rules


def may(rules: Rules, name: str, operation: Operation = Operation.READ, policy: Policy = CLOSED) -> bool:
    return decide(rules, policy, ALICE, operation, TOPIC, name).is_allowed


histories = st.lists(st.tuples(st.booleans(), model.rules), max_size=30)


def played(history: list[tuple[bool, Rule]]) -> tuple[Rules, dict[Rule, None]]:
    rules, plain = Rules(), dict[Rule, None]()
    for is_added, each in history:
        if is_added:
            rules.add(each)
            plain.setdefault(each)
        else:
            rules.remove(each)
            plain.pop(each, None)
    return rules, plain


@given(histories, model.policies, model.askers, st.sampled_from(Operation), st.sampled_from(model.NAMES))
def test_a_decision_is_that_of_the_model_whatever_was_added_and_removed(
    history: list[tuple[bool, Rule]], policy: Policy, asker: Asker, operation: Operation, name: str
) -> None:
    rules, plain = played(history)
    for resource_type in (TOPIC, ResourceType.GROUP):
        expected = model.may(plain, policy, asker, operation, resource_type, name)
        verdict = decide(rules, policy, asker, operation, resource_type, name)
        assert verdict.is_allowed == expected
        assert (verdict.rule is None) == (verdict.reason not in (Reason.ALLOWED, Reason.DENIED))
        if verdict.rule is not None:
            assert verdict.rule in plain
            assert verdict.rule.applies_to(name)
        expected = model.may_any(plain, policy, asker, operation, resource_type)
        assert allows_any(rules, policy, asker, operation, resource_type) == expected


@given(histories)
def test_removing_rules_leaves_the_index_of_those_that_are_left(history: list[tuple[bool, Rule]]) -> None:
    rules, plain = played(history)
    assert list(rules) == list(plain)
    for each in plain:
        rules.remove(each)
        assert each not in rules
    assert not len(rules)
    for resource_type in ResourceType:
        for name in model.NAMES:
            assert not list(rules.about(resource_type, name))
        for principal in model.PRINCIPALS:
            assert not list(rules.of(principal, resource_type))


@given(
    st.lists(st.one_of(model.rules, st.tuples(model.askers, st.sampled_from(model.NAMES))), max_size=30),
    model.policies,
)
def test_a_remembered_answer_is_dropped_with_the_rules_it_came_from(
    steps: list[Rule | tuple[Asker, str]], policy: Policy
) -> None:
    rules = Rules()
    answers = Answers(rules, policy)
    for step in steps:
        if isinstance(step, Rule):
            rules.remove(step) if step in rules else rules.add(step)
            continue
        asker, name = step
        for _ in range(2):
            expected = decide(rules, policy, asker, Operation.READ, TOPIC, name).is_allowed
            assert answers.allows(asker, Operation.READ, TOPIC, name) == expected
            expected = allows_any(rules, policy, asker, Operation.WRITE, TOPIC)
            assert answers.allows_any(asker, Operation.WRITE, TOPIC) == expected


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "ACL_ANSWERS_MAX", 10)
    answers = Answers(rules_of(rule("*")), CLOSED)
    for number in range(100):
        assert answers.allows(
            Asker((f"User:{number % 7}", "User:alice"), "::1"), Operation.READ, TOPIC, str(number)
        )
        assert answers.count <= 10
    long = "x" * (limits.ACL_ANSWERED_NAME_CHARACTERS_MAX + 1)
    count = answers.count
    assert answers.allows(ALICE, Operation.READ, TOPIC, long)
    assert answers.count == count


@pytest.mark.parametrize(
    "denying",
    [
        pytest.param(rule("orders", permission=Permission.DENY), id="by name"),
        pytest.param(rule("*", permission=Permission.DENY), id="by the wildcard"),
        pytest.param(rule("ord", permission=Permission.DENY, pattern=Pattern.PREFIXED), id="by a prefix"),
        pytest.param(rule("orders", Operation.ALL, permission=Permission.DENY), id="of everything"),
        pytest.param(rule("orders", principal="User:*", permission=Permission.DENY), id="of everybody"),
        pytest.param(rule("orders", host="10.0.0.1", permission=Permission.DENY), id="from there"),
    ],
)
def test_a_denial_counts_whatever_allows_and_in_whatever_order(denying: Rule) -> None:
    allowing = rule("orders")
    assert not may(rules_of(allowing, denying), "orders")
    assert not may(rules_of(denying, allowing), "orders")


def test_a_denial_implies_nothing() -> None:
    rules = rules_of(
        rule("orders", Operation.READ, permission=Permission.DENY), rule("orders", Operation.DESCRIBE)
    )
    assert may(rules, "orders", Operation.DESCRIBE)


def test_an_asterisk_is_every_name_in_a_literal_rule_only() -> None:
    assert may(rules_of(rule("*")), "orders")
    prefixed = rules_of(rule("*", pattern=Pattern.PREFIXED))
    assert not may(prefixed, "orders")
    assert may(prefixed, "*starred")


def test_a_rule_about_somebody_else_closes_what_would_be_open() -> None:
    assert may(rules_of(), "orders", policy=OPEN)
    assert not may(rules_of(rule("orders", principal="User:bob")), "orders", policy=OPEN)
    assert not may(rules_of(rule("*", principal="User:bob")), "orders", policy=OPEN)


def test_topics_of_the_cluster_itself_are_allowed_by_name_alone() -> None:
    wide = rules_of(
        rule("*"), rule("__", pattern=Pattern.PREFIXED), rule("__state", pattern=Pattern.PREFIXED)
    )
    assert not may(wide, "__state")
    assert not may(rules_of(), "__state", policy=OPEN)
    assert may(rules_of(rule("__state")), "__state")
    assert not may(rules_of(rule("__state"), rule("*", permission=Permission.DENY)), "__state")


def test_a_super_user_is_not_denied_by_rules() -> None:
    denying = rules_of(rule("*", permission=Permission.DENY))
    verdict = decide(denying, Policy(frozenset({"User:alice"})), ALICE, Operation.READ, TOPIC, "orders")
    assert verdict.is_allowed
    assert verdict.reason is Reason.SUPER_USER


def test_a_group_is_allowed_and_denied_as_its_members() -> None:
    member = Asker(("User:alice", "Group:crew"), "10.0.0.1")
    allowed = rules_of(rule("orders", principal="Group:crew"))
    assert decide(allowed, CLOSED, member, Operation.READ, TOPIC, "orders").is_allowed
    assert not decide(allowed, CLOSED, ALICE, Operation.READ, TOPIC, "orders").is_allowed
    allowed.add(rule("orders", permission=Permission.DENY))
    assert not decide(allowed, CLOSED, member, Operation.READ, TOPIC, "orders").is_allowed


def test_removing_one_rule_about_a_resource_leaves_what_the_others_say() -> None:
    siblings = (
        rule("orders", Operation.WRITE),
        rule("orders", Operation.READ, principal="User:bob"),
        rule("orders", Operation.DELETE, permission=Permission.DENY),
        rule("orders", Operation.ALTER, pattern=Pattern.PREFIXED),
    )
    rules = rules_of(rule("orders"), *siblings)
    rules.remove(rule("orders"))
    assert not may(rules, "orders", Operation.READ)
    assert may(rules, "orders", Operation.WRITE)
    assert may(rules, "orders", Operation.ALTER)
    bob = Asker(("User:bob",), "10.0.0.1")
    assert decide(rules, CLOSED, bob, Operation.READ, TOPIC, "orders").is_allowed
    assert decide(rules, CLOSED, ALICE, Operation.DELETE, TOPIC, "orders").reason is Reason.DENIED
