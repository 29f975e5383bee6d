"""Since when a rule holds, and what that makes of it: an alert that is pending, or one that is firing.

Invariants
    An alert fires when its rule has held for long enough without a break, and is gone when it holds no longer.
    What is left out for want of room is counted.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from msgspec import Struct

from ropewalk.alerts.history import Labels
from ropewalk.alerts.rules import Rule
from ropewalk.base.limits import ALERTS_MAX


class State(Enum):
    PENDING = "pending"
    FIRING = "firing"


class Alert(Struct, frozen=True):
    """A rule that holds for one set of labels."""

    rule: Rule
    labels: Labels
    state: State
    since_ms: int
    """When it began to hold."""
    value: float

    @property
    def summary(self) -> str:
        return self.rule.told(dict(self.labels), self.value)

    @property
    def key(self) -> tuple[str, Labels, int]:
        """One alert from its beginning to its end."""
        return self.rule.name, self.labels, self.since_ms


class _Standing(Struct):
    since_ms: int
    value: float
    is_firing: bool = False


class Standings:
    """Of all rules of a node."""

    __slots__ = ("_by_rule", "_count", "left_out_count")

    def __init__(self) -> None:
        self._by_rule: dict[str, tuple[Rule, dict[Labels, _Standing]]] = {}
        self._count = 0
        self.left_out_count = 0

    def on_result(self, rule: Rule, holding: Mapping[Labels, float], now_ms: int) -> None:
        """`holding`: for which labels the rule holds at present."""
        standings = self._by_rule.setdefault(rule.name, (rule, {}))[1]
        for labels in [labels for labels in standings if labels not in holding]:
            del standings[labels]
            self._count -= 1
        for labels, value in holding.items():
            standing = standings.get(labels)
            if standing is None:
                if self._count >= ALERTS_MAX:
                    self.left_out_count += 1
                    continue
                standing = standings[labels] = _Standing(now_ms, value)
                self._count += 1
            standing.value = value
            standing.is_firing |= now_ms - standing.since_ms >= rule.for_s * 1000

    def forget(self, rule: Rule) -> None:
        """Another node looks at it from here on."""
        forgotten = self._by_rule.pop(rule.name, None)
        if forgotten is not None:
            self._count -= len(forgotten[1])

    def alerts(self) -> Iterator[Alert]:
        """All that hold, in the order in which rules were looked at first."""
        for rule, standings in self._by_rule.values():
            for labels, standing in standings.items():
                yield _alert(rule, labels, standing)


def _alert(rule: Rule, labels: Labels, standing: _Standing) -> Alert:
    state = State.FIRING if standing.is_firing else State.PENDING
    return Alert(rule, labels, state, standing.since_ms, standing.value)
