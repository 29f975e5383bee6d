"""A rule: what it looks at, why that matters, what to do, and where more is said."""

from collections.abc import Callable, Iterable
from enum import Enum

from msgspec import Struct

from ropewalk.views.diagnosis.facts import Facts


class Verdict(Enum):
    GOOD = "ok"
    ODD = "note"
    """Works, but not as everyone would expect."""
    WRONG = "wrong"


class Sighting(Struct, frozen=True):
    where: str
    """A node, a topic, a group, or a part of this machine."""
    what: str


class Rule(Struct, frozen=True, kw_only=True):
    name: str
    verdict: Verdict
    sees: str
    """When it has something to say, in a sentence."""
    why: str
    command: str
    """What to run, or to do, next."""
    page: str
    """Below docs, with a heading."""
    look: Callable[[Facts], Iterable[Sighting]]


class Finding(Struct, frozen=True):
    check: str
    verdict: Verdict
    detail: str
    rule: str | None = None
    why: str | None = None
    command: str | None = None
    page: str | None = None


def findings(rules: Iterable[Rule], facts: Facts) -> list[Finding]:
    """What is wrong first; in the order of the rules."""
    found = [
        Finding(
            each.where,
            rule.verdict,
            each.what,
            rule=rule.name,
            why=rule.why,
            command=rule.command,
            page=rule.page,
        )
        for rule in rules
        for each in rule.look(facts)
    ]
    return sorted(found, key=lambda each: each.verdict is not Verdict.WRONG)
