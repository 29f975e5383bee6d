"""What callers may do: Kafka's rules about resources, and the decision that follows from them.

Invariants
    A DENY counts whatever else is said: all rules about a resource, of all names that the caller goes by, are looked at before an ALLOW does.
    A DENY implies nothing; an ALLOW to read, write, delete or alter is one to describe as well, and one to alter settings to describe them.
    `*` stands for every name in a literal rule only. A prefix `*` is about names that begin with an asterisk.
    What the cluster keeps for itself (topics that begin with `__`) is allowed by rules that name it literally, and by nothing else.
    Hosts are addresses as text: no networks, and no names that would have to be looked up.

What a reader could get wrong
    Where resources without a rule are open to everybody, one rule about somebody else closes the resource for all.
    `version` changes with every rule, so it serves as the version of anything that follows from the rules.
"""

from collections.abc import Iterator
from enum import IntEnum, StrEnum
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import ACL_ANSWERED_NAME_CHARACTERS_MAX, ACL_ANSWERS_MAX

EVERYBODY: Final = "User:*"
ANY_HOST: Final = "*"
WILDCARD: Final = "*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""

_INTERNAL_PREFIX: Final = "__"
_UNNAMED: Final = "\x00"
"""Begins no name and no prefix of a rule (`controller/acls.py` sees to that), so with it a name can be made that no rule has in mind."""


class ResourceType(IntEnum):
    """By Kafka's codes, as all that follows."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Pattern(IntEnum):
    """How the name of a rule is meant."""

    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    DENY = 2
    ALLOW = 3


class Rule(Struct, frozen=True):
    resource_type: ResourceType
    name: str
    pattern: Pattern
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def applies_to(self, name: str) -> bool:
        """Whether it is about the resource of this name."""
        if self.pattern is Pattern.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


class Asker(Struct, frozen=True):
    """Somebody who wants to do something: the names he goes by, his own first, and the address he comes from."""

    principals: tuple[str, ...]
    host: str


class Policy(Struct, frozen=True):
    """What is configured, and not decided by rules."""

    super_users: frozenset[str] = frozenset()
    """Principals who may do everything."""
    allows_unruled: bool = False
    """Whether a resource that no rule is about is open to everybody."""


def policy_from(super_users: str, allows_unruled: str) -> Policy:
    """As the settings have it, with semicolons between users. Raises `InvalidSetting` for what is no principal."""
    names = [name.strip() for name in super_users.split(";") if name.strip()]
    for name in names:
        kind, colon, rest = name.partition(":")
        if not (kind and colon and rest):
            raise InvalidSetting(f"super.users names {name!r}, must be TYPE:NAME, as User:alice")
    return Policy(frozenset(names), allows_unruled == "true")


class Reason(StrEnum):
    SUPER_USER = "super user"
    DENIED = "a rule denies it"
    ALLOWED = "a rule allows it"
    UNRULED = "no rule is about the resource, and such are open to everybody"
    NO_RULE = "no rule allows it"


class Verdict(Struct, frozen=True):
    is_allowed: bool
    reason: Reason
    rule: Rule | None = None
    """Which decided, where one did."""


_IMPLYING: Final = {
    operation: frozenset({operation, Operation.ALL, *implying})
    for operation, implying in {
        **dict.fromkeys(Operation, ()),
        Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
        Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
    }.items()
}
"""By operation, those that are allowed together with it."""

_ByPrincipal = dict[str, dict[Rule, None]]


class _OfType:
    """The rules about one type of resource."""

    __slots__ = ("literal", "prefix_lengths", "prefixed", "whole")

    def __init__(self) -> None:
        self.literal: dict[str, _ByPrincipal] = {}
        self.prefixed: dict[str, _ByPrincipal] = {}
        self.prefix_lengths: dict[int, int] = {}
        """How many prefixes there are of each length."""
        self.whole: _ByPrincipal = {}

    def about(self, name: str) -> Iterator[_ByPrincipal]:
        """The rules that apply to a name, by principal."""
        literal = self.literal.get(name)
        if literal is not None:
            yield literal
        if name != WILDCARD:
            wildcard = self.literal.get(WILDCARD)
            if wildcard is not None:
                yield wildcard
        for length in self.prefix_lengths:
            if length <= len(name):
                prefixed = self.prefixed.get(name[:length])
                if prefixed is not None:
                    yield prefixed

    def table(self, rule: Rule) -> dict[str, _ByPrincipal]:
        return self.literal if rule.pattern is Pattern.LITERAL else self.prefixed


class Rules:
    """All rules, found by what they are about."""

    __slots__ = ("_by_type", "_rules", "version")

    def __init__(self) -> None:
        self.version = 0
        self._rules: dict[Rule, None] = {}
        self._by_type: dict[ResourceType, _OfType] = {}

    def __contains__(self, rule: Rule) -> bool:
        return rule in self._rules

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def clear(self) -> None:
        self._rules.clear()
        self._by_type.clear()
        self.version += 1

    def add(self, rule: Rule) -> None:
        self.version += 1
        if rule in self._rules:
            return
        self._rules[rule] = None
        of_type = self._by_type.setdefault(rule.resource_type, _OfType())
        table = of_type.table(rule)
        if rule.pattern is Pattern.PREFIXED and rule.name not in table:
            length = len(rule.name)
            of_type.prefix_lengths[length] = of_type.prefix_lengths.get(length, 0) + 1
        table.setdefault(rule.name, {}).setdefault(rule.principal, {})[rule] = None
        of_type.whole.setdefault(rule.principal, {})[rule] = None

    def remove(self, rule: Rule) -> None:
        self.version += 1
        if rule not in self._rules:
            return
        del self._rules[rule]
        of_type = self._by_type[rule.resource_type]
        table = of_type.table(rule)
        _discard(table[rule.name], rule)
        _discard(of_type.whole, rule)
        if not table[rule.name]:
            del table[rule.name]
            if rule.pattern is Pattern.PREFIXED:
                of_type.prefix_lengths[len(rule.name)] -= 1
                if not of_type.prefix_lengths[len(rule.name)]:
                    del of_type.prefix_lengths[len(rule.name)]

    def about(self, resource_type: ResourceType, name: str) -> Iterator[_ByPrincipal]:
        of_type = self._by_type.get(resource_type)
        return iter(()) if of_type is None else of_type.about(name)

    def of(self, principal: str, resource_type: ResourceType) -> Iterator[Rule]:
        """Those that name the principal, about resources of one type."""
        of_type = self._by_type.get(resource_type)
        return iter(()) if of_type is None else iter(of_type.whole.get(principal, ()))


def _discard(by_principal: _ByPrincipal, rule: Rule) -> None:
    of_principal = by_principal[rule.principal]
    del of_principal[rule]
    if not of_principal:
        del by_principal[rule.principal]


def decide(
    rules: Rules, policy: Policy, asker: Asker, operation: Operation, resource_type: ResourceType, name: str
) -> Verdict:
    """Whether the asker may, and what says so."""
    if not policy.super_users.isdisjoint(asker.principals):
        return Verdict(True, Reason.SUPER_USER)
    is_internal = resource_type is ResourceType.TOPIC and name.startswith(_INTERNAL_PREFIX)
    implying = _IMPLYING[operation]
    allowing: Rule | None = None
    is_ruled = False
    for by_principal in rules.about(resource_type, name):
        is_ruled = True
        for principal in (*asker.principals, EVERYBODY):
            for rule in by_principal.get(principal, ()):
                if rule.host not in (asker.host, ANY_HOST):
                    continue
                if rule.permission is Permission.DENY:
                    if rule.operation in (operation, Operation.ALL):
                        return Verdict(False, Reason.DENIED, rule)
                elif (
                    allowing is None
                    and rule.operation in implying
                    and (not is_internal or (rule.pattern is Pattern.LITERAL and rule.name == name))
                ):
                    allowing = rule
    if allowing is not None:
        return Verdict(True, Reason.ALLOWED, allowing)
    if not is_ruled and not is_internal and policy.allows_unruled:
        return Verdict(True, Reason.UNRULED)
    return Verdict(False, Reason.NO_RULE)


def allows_any(
    rules: Rules, policy: Policy, asker: Asker, operation: Operation, resource_type: ResourceType
) -> bool:
    """Whether there can be a resource of this type for which the decision is to allow."""
    singled_out = (
        rule.name if rule.pattern is Pattern.LITERAL else rule.name + _UNNAMED
        for principal in (*asker.principals, EVERYBODY)
        for rule in rules.of(principal, resource_type)
        if rule.permission is Permission.ALLOW and rule.operation in _IMPLYING[operation]
    )
    return any(
        decide(rules, policy, asker, operation, resource_type, name).is_allowed
        for name in (_UNNAMED, *singled_out)
    )


class Match(IntEnum):
    """How the name of a filter is compared."""

    ANY = 1
    """With the names of rules as they stand, of either kind."""
    MATCH = 2
    """Every rule that applies to the resource of this name."""
    LITERAL = 3
    PREFIXED = 4


class Filter(Struct, frozen=True):
    """Which rules are looked for; None is any."""

    resource_type: ResourceType | None = None
    name: str | None = None
    match: Match = Match.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation | None = None
    permission: Permission | None = None

    def accepts(self, rule: Rule) -> bool:
        return (
            self.resource_type in (None, rule.resource_type)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (None, rule.operation)
            and self.permission in (None, rule.permission)
            and (self.match in (Match.ANY, Match.MATCH) or int(self.match) == int(rule.pattern))
            and self._accepts_name(rule)
        )

    def _accepts_name(self, rule: Rule) -> bool:
        if self.name is None:
            return True
        return rule.applies_to(self.name) if self.match is Match.MATCH else rule.name == self.name


_Question = tuple[Operation, ResourceType, str | None]


class Answers:
    """Decisions that were made, for as long as the rules are what they were; so the next is a look into a dictionary."""

    def __init__(self, rules: Rules, policy: Policy) -> None:
        self._rules = rules
        self.policy = policy
        self._version = rules.version
        self._by_asker: dict[Asker, dict[_Question, bool]] = {}
        """The longest known asker first."""
        self._count = 0

    def allows(self, asker: Asker, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return self._answer(asker, (operation, resource_type, name))

    def allows_any(self, asker: Asker, operation: Operation, resource_type: ResourceType) -> bool:
        return self._answer(asker, (operation, resource_type, None))

    @property
    def count(self) -> int:
        """How many are remembered."""
        return self._count

    def _answer(self, asker: Asker, question: _Question) -> bool:
        if self._version != self._rules.version:
            self._version = self._rules.version
            self._by_asker.clear()
            self._count = 0
        answered = self._by_asker.get(asker)
        if answered is not None:
            known = answered.get(question)
            if known is not None:
                return known
        operation, resource_type, name = question
        if name is None:
            answer = allows_any(self._rules, self.policy, asker, operation, resource_type)
        else:
            answer = decide(self._rules, self.policy, asker, operation, resource_type, name).is_allowed
        if name is None or len(name) <= ACL_ANSWERED_NAME_CHARACTERS_MAX:
            self._remember(asker, question, answer)
        return answer

    def _remember(self, asker: Asker, question: _Question, answer: bool) -> None:
        while self._count >= ACL_ANSWERS_MAX:
            self._count -= len(self._by_asker.pop(next(iter(self._by_asker))))
        self._by_asker.setdefault(asker, {})[question] = answer
        self._count += 1
