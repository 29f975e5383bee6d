"""A model of the part of PromQL that rules and boards use: it reads the text, and works it out in the plainest way.

It shares nothing with `ropewalk.alerts`, so that the two can be compared. A query that it cannot read raises `ValueError`.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<window>\[[^\]]*\])|(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)"""
    r"""|(?P<name>[a-zA-Z_:][\w:]*)|(?P<sign>==|!=|=~|>=|<=|[-+*/(){},=<>]))"""
)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_AGGREGATIONS = ("sum", "max", "min", "count")
_OVER_TIME = ("rate", "delta", "predict_linear")

_SIGNS: dict[str, Callable[[float, float], bool]] = {">": operator.gt, "<": operator.lt, "==": operator.eq}

Labels = frozenset[tuple[str, str]]
Points = list[tuple[float, float]]
"""Seconds and values."""
Series = Mapping[tuple[str, Labels], Points]


class Query(NamedTuple):
    kind: str
    parts: tuple[Any, ...]


def read(text: str) -> Query:
    reader = _Reader(text)
    query = reader.either()
    if reader.tokens:
        raise ValueError(f"{text}: {reader.tokens[0]} is not expected")
    return query


def names_in(query: Query) -> set[str]:
    if query.kind == "series":
        return {query.parts[0]}
    return set().union(*(names_in(part) for part in query.parts if isinstance(part, Query)))


def labels_in(query: Query) -> set[str]:
    found = {name for name, _, _ in query.parts[1]} if query.kind == "series" else set()
    for part in query.parts:
        if isinstance(part, Query):
            found |= labels_in(part)
        elif query.kind in ("aggregate", "and") and isinstance(part, tuple):
            found |= set(part)
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"{text}: not understood from {text[position:]!r} on")
            kind = match.lastgroup or ""
            self.tokens.append((kind, match[kind]))
            position = match.end()

    def either(self) -> Query:
        left = self.both()
        while self.takes("or"):
            left = Query("or", (left, self.both()))
        return left

    def both(self) -> Query:
        left = self.comparison()
        while self.takes("and"):
            on = self.names() if self.takes("on") else ()
            left = Query("and", (left, self.comparison(), on))
        return left

    def comparison(self) -> Query:
        left = self.sums()
        for sign in (">", "<", "=="):
            if self.takes(sign):
                return Query("compare", (left, sign, self.sums()))
        return left

    def sums(self) -> Query:
        left = self.products()
        while (sign := self.one_of("+", "-")) is not None:
            left = Query(sign, (left, self.products()))
        return left

    def products(self) -> Query:
        left = self.atom()
        while (sign := self.one_of("*", "/")) is not None:
            left = Query(sign, (left, self.atom()))
        return left

    def atom(self) -> Query:
        kind, text = self.next()
        if text == "(":
            inner = self.either()
            self.expect(")")
            return inner
        if kind == "number":
            return Query("number", (float(text),))
        if kind != "name":
            raise ValueError(f"{text} begins no expression")
        if text in _AGGREGATIONS:
            by = self.names() if self.takes("by") else None
            self.expect("(")
            inner = self.either()
            self.expect(")")
            if by is None:
                by = self.names() if self.takes("by") else ()
            return Query("aggregate", (text, inner, by))
        if text in (*_OVER_TIME, "abs", "histogram_quantile"):
            self.expect("(")
            arguments = [self.either()]
            while self.takes(","):
                arguments.append(self.either())
            self.expect(")")
            return Query(text, tuple(arguments))
        return self.series(text)

    def series(self, name: str) -> Query:
        where: list[tuple[str, str, str]] = []
        if self.takes("{"):
            while not self.takes("}"):
                label = self.next()[1]
                sign = self.one_of("=", "=~", "!=")
                where.append((label, sign or "", self.next()[1][1:-1]))
                self.takes(",")
        window = ""
        if self.tokens and self.tokens[0][0] == "window":
            window = self.next()[1][1:-1]
        return Query("series", (name, tuple(where), window))

    def names(self) -> tuple[str, ...]:
        self.expect("(")
        names: list[str] = []
        while not self.takes(")"):
            names.append(self.next()[1])
            self.takes(",")
        return tuple(names)

    def next(self) -> tuple[str, str]:
        if not self.tokens:
            raise ValueError("the query ends too early")
        return self.tokens.pop(0)

    def takes(self, text: str) -> bool:
        if self.tokens and self.tokens[0][1] == text and self.tokens[0][0] != "string":
            del self.tokens[0]
            return True
        return False

    def one_of(self, *texts: str) -> str | None:
        return next((text for text in texts if self.takes(text)), None)

    def expect(self, text: str) -> None:
        if not self.takes(text):
            raise ValueError(f"{text} is missing before {self.tokens[:1]}")


def work_out(query: Query, at_s: float, series: Series) -> dict[Labels, float]:
    """A number without labels stands for itself."""
    match query:
        case Query("number", (value,)):
            return {frozenset(): value}
        case Query("series", (name, where, _)):
            # A series counts while it has a sample of this very moment: each case says when one is gone.
            return {
                labels: value
                for labels, points in _matching(series, name, where)
                for when_s, value in points
                if when_s == at_s
            }
        case Query("rate", (of,)):
            return _over(of, at_s, series, _rate)
        case Query("predict_linear", (of, ahead)):
            ahead_s = ahead.parts[0]
            return _over(of, at_s, series, lambda points, _, end: _line(points, end + ahead_s))
        case Query("abs", (of,)):
            return {labels: abs(value) for labels, value in work_out(of, at_s, series).items()}
        case Query("histogram_quantile", (quantile, of)):
            found: dict[Labels, dict[float, float]] = {}
            for labels, value in work_out(of, at_s, series).items():
                rest = frozenset(pair for pair in labels if pair[0] != "le")
                found.setdefault(rest, {})[float(dict(labels)["le"])] = value
            return {labels: _quantile(quantile.parts[0], buckets) for labels, buckets in found.items()}
        case Query("aggregate", (how, of, by)):
            groups: dict[Labels, list[float]] = {}
            for labels, value in work_out(of, at_s, series).items():
                groups.setdefault(frozenset(pair for pair in labels if pair[0] in by), []).append(value)
            return {labels: sum(values) if how == "sum" else max(values) for labels, values in groups.items()}
        case Query("/", (upper, lower)):
            divisors = work_out(lower, at_s, series)
            return {
                labels: value / divisors[labels] if divisors[labels] else math.nan if not value else math.inf
                for labels, value in work_out(upper, at_s, series).items()
                if labels in divisors
            }
        case Query("compare", (of, sign, limit)):
            bound = limit.parts[0]
            holds: Callable[[float, float], bool] = _SIGNS[sign]
            return {
                labels: value for labels, value in work_out(of, at_s, series).items() if holds(value, bound)
            }
        case Query("and", (first, second, on)):
            others = [
                {pair for pair in labels if not on or pair[0] in on}
                for labels in work_out(second, at_s, series)
            ]
            return {
                labels: value
                for labels, value in work_out(first, at_s, series).items()
                if {pair for pair in labels if not on or pair[0] in on} in others
            }
        case Query("or", (first, second)):
            found_first = work_out(first, at_s, series)
            more = work_out(second, at_s, series)
            return {
                **{labels: value for labels, value in more.items() if labels not in found_first},
                **found_first,
            }
    raise ValueError(f"{query.kind} is not worked out here")


def _matching(
    series: Series, name: str, where: tuple[tuple[str, str, str], ...]
) -> list[tuple[Labels, Points]]:
    return [
        (labels, points)
        for (each, labels), points in series.items()
        if each == name and all(dict(labels).get(label, "") == value for label, _, value in where)
    ]


def _over(of: Query, at_s: float, series: Series, function: Any) -> dict[Labels, float]:
    name, where, window = of.parts
    window_s = int(window[:-1]) * _UNITS[window[-1]]
    found: dict[Labels, float] = {}
    for labels, points in _matching(series, name, where):
        within = [point for point in points if at_s - window_s <= point[0] <= at_s]
        if len(within) >= 2:
            found[labels] = function(within, window_s, at_s)
    return found


def _rate(points: Points, window_s: float, end_s: float) -> float:
    increase = sum(
        after - before if after >= before else after for (_, before), (_, after) in pairwise(points)
    )
    (first_s, first), (last_s, _) = points[0], points[-1]
    covered_s = last_s - first_s
    usual_s = covered_s / (len(points) - 1)
    to_start_s = first_s - (end_s - window_s)
    if increase > 0:
        to_start_s = min(to_start_s, covered_s * first / increase)
    stretched_s = covered_s
    for gap_s in (to_start_s, end_s - last_s):
        stretched_s += gap_s if gap_s < 1.1 * usual_s else usual_s / 2
    return increase * stretched_s / covered_s / window_s


def _line(points: Points, at_s: float) -> float:
    if len({value for _, value in points}) == 1:
        return points[0][1]
    mean_time = math.fsum(time for time, _ in points) / len(points)
    mean_value = math.fsum(value for _, value in points) / len(points)
    slope = math.fsum((time - mean_time) * (value - mean_value) for time, value in points) / math.fsum(
        (time - mean_time) ** 2 for time, _ in points
    )
    return mean_value + slope * (at_s - mean_time)


def _quantile(quantile: float, buckets: dict[float, float]) -> float:
    bounds = sorted(buckets)
    total = max(buckets.values())  # where counts fall, which they should not, the larger one stands
    if bounds[-1] != math.inf or len(bounds) < 2 or not total:
        return math.nan
    rank, below, lower = quantile * total, 0.0, 0.0
    for bound in bounds:
        below_this = max(below, buckets[bound])
        if below_this >= rank or bound == math.inf:
            if bound == math.inf:
                return bounds[-2]
            return lower + (bound - lower) * ((rank - below) / (below_this - below))
        below, lower = below_this, bound
    return math.nan
