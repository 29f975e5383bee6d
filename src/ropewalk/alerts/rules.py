"""What a rule is: when it holds, for how long it must, how bad that is, who can see it, and what a person is told."""

from enum import Enum
from typing import Final

from msgspec import Struct

from ropewalk.alerts.expressions import Condition, windows_of

VALUE: Final = "value"
"""What a summary calls the number that a rule is about; every other name in braces is a label."""


class Severity(Enum):
    CRITICAL = "critical"
    """Clients are hurt, or will be before long."""
    WARNING = "warning"


class Scope(Enum):
    """Who can see it without Prometheus."""

    NODE = "each node, of itself"
    CLUSTER = "the node that decides"
    PROMETHEUS = "Prometheus alone"
    """It takes somebody who looks at all nodes, or from outside."""


class Rule(Struct, frozen=True, kw_only=True):
    name: str
    condition: Condition
    for_s: int = 0
    """How long it must hold without a break."""
    severity: Severity
    scope: Scope = Scope.NODE
    summary: str
    """One line, with labels and the value in braces."""
    why: str
    """What it means to those who use the cluster."""
    remedy: str
    """Where to look, and what helps."""

    @property
    def has_window(self) -> bool:
        return bool(windows_of(self.condition))

    @property
    def anchor(self) -> str:
        """Of its heading in docs/reference/alerts.md."""
        return self.name.lower()

    def told(self, labels: dict[str, str], value: float) -> str:
        """The summary of one alert."""
        return self.summary.format_map(_Told(labels, value=f"{value:.6g}"))


class RuleGroup(Struct, frozen=True):
    """Rules that have to do with each other, under a heading."""

    name: str
    heading: str
    rules: tuple[Rule, ...]


class _Told(dict[str, str]):
    """A label that is not there is empty, as in Prometheus."""

    def __missing__(self, name: str) -> str:
        return ""
