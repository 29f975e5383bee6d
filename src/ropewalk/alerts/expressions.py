"""The forms that rules are made of: a small part of PromQL, as types.

Each form answers a vector: a number for each set of labels. `promql.py` writes a form as Prometheus reads it, `evaluation.py` works it out
here; `tests/alerts` compares the two.

What a reader could get wrong
    A comparison does not answer yes or no: it keeps the numbers that it holds for, as in Prometheus. What is left at the end are alerts.
    Forms with a window need what was before. How far back that is, `windows_of` says.
"""

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from ropewalk.base.metrics import Kind, Metric


class Part(Enum):
    """Of a histogram."""

    BUCKET = "bucket"
    COUNT = "count"
    SUM = "sum"


class Series(Struct, frozen=True):
    """What a metric says at the moment, as far as it has the labels in `where`."""

    metric: Metric
    where: tuple[tuple[str, str], ...] = ()
    part: Part | None = None

    @property
    def name(self) -> str:
        assert (self.metric.kind is Kind.HISTOGRAM) == (self.part is not None), "a histogram has parts"
        return self.metric.name if self.part is None else f"{self.metric.name}_{self.part.value}"


class Seen(Struct, frozen=True):
    """Prometheus's own `up`: whether it could read a node's metrics. A node itself knows nothing of it."""

    job: str = "ropewalk"

    @property
    def name(self) -> str:
        return "up"


class Rate(Struct, frozen=True):
    """How much a counter grows per second, on average over a window."""

    of: Series
    window_s: int


class Predicted(Struct, frozen=True):
    """What a gauge will be, if it goes on along the straight line that fits its window best."""

    of: Series
    window_s: int
    ahead_s: int


class Gathering(Enum):
    SUM = "sum"
    MAX = "max"


class Gathered(Struct, frozen=True):
    """One number for all that agree in the labels `by`."""

    how: Gathering
    of: "Vector"
    by: tuple[str, ...] = ()


class Quantile(Struct, frozen=True):
    """Estimated from the buckets of a histogram, which lie in the label `le`."""

    quantile: float
    of: "Vector"


class Magnitude(Struct, frozen=True):
    of: "Vector"


class Quotient(Struct, frozen=True):
    """Of those that have all labels in common."""

    upper: "Vector"
    lower: "Vector"


Vector: TypeAlias = Series | Seen | Rate | Predicted | Gathered | Quantile | Magnitude | Quotient


class Sign(Enum):
    ABOVE = ">"
    BELOW = "<"
    EQUAL = "=="


class Compared(Struct, frozen=True):
    """Those of which it is true."""

    of: Vector
    sign: Sign
    limit: float


class Both(Struct, frozen=True):
    """What is in the first, where the second has something with the same labels, or with the same labels `on`."""

    first: "Condition"
    second: "Condition"
    on: tuple[str, ...] = ()


class Either(Struct, frozen=True):
    """What is in the first, and of the second what has other labels."""

    first: "Condition"
    second: "Condition"


Condition: TypeAlias = Compared | Both | Either


def parts_of(expression: Vector | Condition) -> Iterator[Vector | Condition]:
    """The expression, and all that it is made of."""
    yield expression
    match expression:
        case Rate(of=of) | Predicted(of=of):
            yield of
        case Gathered(of=of) | Quantile(of=of) | Magnitude(of=of) | Compared(of=of):
            yield from parts_of(of)
        case Quotient(upper=upper, lower=lower):
            yield from parts_of(upper)
            yield from parts_of(lower)
        case Both(first=first, second=second) | Either(first=first, second=second):
            yield from parts_of(first)
            yield from parts_of(second)
        case Series() | Seen():
            pass


def series_of(expression: Vector | Condition) -> list[Series]:
    return [each for each in parts_of(expression) if isinstance(each, Series)]


def windows_of(expression: Vector | Condition) -> dict[str, int]:
    """By the name of the series, how many seconds back must be known of it."""
    windows: dict[str, int] = {}
    for each in parts_of(expression):
        if isinstance(each, Rate | Predicted):
            windows[each.of.name] = max(windows.get(each.of.name, 0), each.window_s)
    return windows
