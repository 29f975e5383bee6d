"""What a decision ought to be, in ten lines that look at every rule: the index and its answers are held against this."""

from collections.abc import Iterable

from hypothesis import strategies as st

from ropewalk.security.access import (
    Asker,
    Filter,
    Match,
    Operation,
    Pattern,
    Permission,
    Policy,
    ResourceType,
    Rule,
)

NAMES = ("a", "ab", "abc", "abd", "b", "*", "a*", "__a", "__ab")
USERS = ("User:alice", "User:bob")
PRINCIPALS = (*USERS, "User:*", "Group:crew")
HOSTS = ("10.0.0.1", "10.0.0.2")
DESCRIBING = {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
DESCRIBING_CONFIGS = {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}

rules = st.builds(
    Rule,
    st.sampled_from((ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP)),
    st.sampled_from(NAMES),
    st.sampled_from(Pattern),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(("*", *HOSTS)),
    st.sampled_from(Operation),
    st.sampled_from((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
)
askers = st.builds(
    Asker,
    st.sampled_from(USERS).flatmap(lambda user: st.sampled_from(((user,), (user, "Group:crew")))),
    st.sampled_from(HOSTS),
)
policies = st.builds(Policy, st.sampled_from((frozenset[str](), frozenset({"User:bob"}))), st.booleans())
filters = st.builds(
    Filter,
    st.sampled_from((None, ResourceType.TOPIC, ResourceType.GROUP)),
    st.sampled_from((None, *NAMES)),
    st.sampled_from(Match),
    st.sampled_from((None, *PRINCIPALS)),
    st.sampled_from((None, "*", *HOSTS)),
    st.sampled_from((None, *Operation)),
    st.sampled_from((None, *Permission)),
)


def may(
    known: Iterable[Rule],
    policy: Policy,
    asker: Asker,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
) -> bool:
    if policy.super_users & set(asker.principals):
        return True
    internal = resource_type == ResourceType.TOPIC and name[:2] == "__"
    about = [rule for rule in known if rule.resource_type == resource_type and _is_about(rule, name)]
    mine = [
        rule
        for rule in about
        if rule.principal in (*asker.principals, "User:*") and rule.host in (asker.host, "*")
    ]
    if any(
        rule.permission == Permission.DENY and rule.operation in (operation, Operation.ALL) for rule in mine
    ):
        return False
    if not about:
        return policy.allows_unruled and not internal
    implying = {
        Operation.DESCRIBE: DESCRIBING,
        Operation.DESCRIBE_CONFIGS: DESCRIBING_CONFIGS,
    }.get(operation, {operation})
    return any(
        rule.permission == Permission.ALLOW
        and rule.operation in implying | {Operation.ALL}
        and (not internal or (rule.pattern == Pattern.LITERAL and rule.name == name))
        for rule in mine
    )


def may_any(
    known: Iterable[Rule], policy: Policy, asker: Asker, operation: Operation, resource_type: ResourceType
) -> bool:
    """Every name that a rule could single out, and one that none does."""
    known = list(known)
    names = {rule.name for rule in known} | {f"{rule.name}~" for rule in known} | {"nobody's"}
    return any(may(known, policy, asker, operation, resource_type, name) for name in names)


def _is_about(rule: Rule, name: str) -> bool:
    if rule.pattern == Pattern.PREFIXED:
        return name.startswith(rule.name)
    return rule.name in ("*", name)
