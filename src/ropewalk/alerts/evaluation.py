"""Working out a condition from samples, number for number as Prometheus does.

What a reader could get wrong
    Division by 0 is no error: it gives an infinity, or something that is no number and that no comparison holds for.
    A rate looks beyond the samples of its window to the window's ends, as far as samples usually are apart: that is why it
    differs from what was counted divided by the time.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import copysign, inf, isinf, isnan, nan
from typing import Final, Protocol, TypeAlias, assert_never

from ropewalk.alerts.expressions import (
    Both,
    Compared,
    Condition,
    Either,
    Gathered,
    Gathering,
    Magnitude,
    Predicted,
    Quantile,
    Quotient,
    Rate,
    Seen,
    Series,
    Sign,
    Vector,
)
from ropewalk.alerts.history import Labels, Past, Samples

Numbers: TypeAlias = dict[Labels, float]

_HOLDS: Final[Mapping[Sign, Callable[[float, float], bool]]] = {
    Sign.ABOVE: lambda value, limit: value > limit,
    Sign.BELOW: lambda value, limit: value < limit,
    Sign.EQUAL: lambda value, limit: value == limit,
}
_EDGE_FACTOR: Final = 1.1
"""A window's end that is further from the samples than this many of their distances was not covered by the series."""


def evaluate(expression: Vector | Condition, at_ms: int, samples: Samples) -> Numbers:
    match expression:
        case Series(where=where):
            wanted = set(where)
            return {
                labels: value
                for labels, value in samples.now(expression.name).items()
                if wanted <= set(labels)
            }
        case Seen(job=job):
            return {
                labels: value
                for labels, value in samples.now(expression.name).items()
                if ("job", job) in labels
            }
        case Rate(of=of, window_s=window_s):
            return _over_time(of, at_ms, window_s, samples, _rate)
        case Predicted(of=of, window_s=window_s, ahead_s=ahead_s):
            return _over_time(of, at_ms, window_s, samples, partial(_predicted, ahead_s=ahead_s))
        case Gathered(how=how, of=of, by=by):
            return _gathered(evaluate(of, at_ms, samples), how, by)
        case Quantile(quantile=quantile, of=of):
            return _quantiles(quantile, evaluate(of, at_ms, samples))
        case Magnitude(of=of):
            return {labels: abs(value) for labels, value in evaluate(of, at_ms, samples).items()}
        case Quotient(upper=upper, lower=lower):
            divisors = evaluate(lower, at_ms, samples)
            return {
                labels: _divided(value, divisors[labels])
                for labels, value in evaluate(upper, at_ms, samples).items()
                if labels in divisors
            }
        case Compared(of=of, sign=sign, limit=limit):
            holds = _HOLDS[sign]
            return {
                labels: value for labels, value in evaluate(of, at_ms, samples).items() if holds(value, limit)
            }
        case Both(first=first, second=second, on=on):
            others = {_only(labels, on) for labels in evaluate(second, at_ms, samples)}
            return {
                labels: value
                for labels, value in evaluate(first, at_ms, samples).items()
                if _only(labels, on) in others
            }
        case Either(first=first, second=second):
            return evaluate(second, at_ms, samples) | evaluate(first, at_ms, samples)
        case _:
            assert_never(expression)


class _OverTime(Protocol):
    """From samples `first` to `end` of a past, at least two, which lie in the window."""

    def __call__(self, past: Past, first: int, end: int, *, at_ms: int, window_s: int) -> float | None: ...


def _over_time(of: Series, at_ms: int, window_s: int, samples: Samples, function: _OverTime) -> Numbers:
    since_ms = at_ms - window_s * 1000
    found: Numbers = {}
    wanted = set(of.where)
    for labels, past in samples.past(of.name):
        if not wanted <= set(labels):
            continue
        first, end = past.first_since(since_ms), past.first_since(at_ms + 1)
        if end - first < 2:  # one sample says nothing of a course
            continue
        value = function(past, first, end, at_ms=at_ms, window_s=window_s)
        if value is not None:
            found[labels] = value
    return found


def _rate(past: Past, first: int, end: int, *, at_ms: int, window_s: int) -> float | None:
    times_ms, count = past.times_ms, end - first
    increase = past.grown[end - 1] - past.grown[first]
    sampled_s = (times_ms[end - 1] - times_ms[first]) / 1000
    if sampled_s == 0:
        return None
    distance_s = sampled_s / (count - 1)
    before_s = window_s - (at_ms - times_ms[first]) / 1000
    after_s = (at_ms - times_ms[end - 1]) / 1000
    if increase > 0 and past.values[first] >= 0:
        # A counter was never below 0: the line is not drawn further back than it would be there.
        before_s = min(before_s, sampled_s * (past.values[first] / increase))
    edge_s = distance_s * _EDGE_FACTOR
    covered_s = sampled_s
    covered_s += before_s if before_s < edge_s else distance_s / 2
    covered_s += after_s if after_s < edge_s else distance_s / 2
    return increase * (covered_s / sampled_s / window_s)


def _predicted(past: Past, first: int, end: int, *, at_ms: int, window_s: int, ahead_s: int) -> float | None:
    """By least squares, with the present as the origin of time."""
    assert end - first >= 2, f"a line through {end - first} samples of {window_s} s"
    values = past.values[first:end]
    if values.count(values[0]) == len(values):
        return nan if isinf(values[0]) else values[0]
    times_s = [(each - at_ms) / 1000 for each in past.times_ms[first:end]]
    count, sum_times, sum_values = len(values), sum(times_s), sum(values)
    covariance = sum(t * v for t, v in zip(times_s, values, strict=True)) - sum_times * sum_values / count
    variance = sum(t * t for t in times_s) - sum_times * sum_times / count
    slope = _divided(covariance, variance)
    return slope * ahead_s + (sum_values / count - slope * sum_times / count)


def _gathered(numbers: Numbers, how: Gathering, by: tuple[str, ...]) -> Numbers:
    found: Numbers = {}
    for labels, value in numbers.items():
        group = _among(labels, by)
        if group not in found:
            found[group] = value
        elif how is Gathering.SUM:
            found[group] += value
        elif value > found[group] or isnan(found[group]):
            found[group] = value
    return found


def _quantiles(quantile: float, numbers: Numbers) -> Numbers:
    histograms: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in numbers.items():
        bound = dict(labels).get("le")
        if bound is not None:
            rest = tuple(pair for pair in labels if pair[0] != "le")
            histograms.setdefault(rest, []).append((float(bound), count))
    return {labels: _quantile(quantile, sorted(buckets)) for labels, buckets in histograms.items()}


def _quantile(quantile: float, buckets: list[tuple[float, float]]) -> float:
    """Buckets count from below; within one, values are taken to be spread evenly."""
    if buckets[-1][0] != inf or len(buckets) < 2:
        return nan
    counts: list[float] = []
    for _, count in buckets:
        counts.append(max(count, counts[-1]) if counts else count)
    total = counts[-1]
    if total == 0 or isnan(total):
        return nan
    rank = quantile * total
    at = next((index for index, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if at == len(counts) - 1:
        return buckets[-2][0]
    upper = buckets[at][0]
    if at == 0 and upper <= 0:
        return upper
    lower, below = (buckets[at - 1][0], counts[at - 1]) if at else (0.0, 0.0)
    return lower + (upper - lower) * _divided(rank - below, counts[at] - below)


def _divided(value: float, by: float) -> float:
    if by:
        return value / by
    return nan if value == 0 or isnan(value) else copysign(inf, value) * copysign(1, by)


def _only(labels: Labels, on: tuple[str, ...]) -> Labels:
    """All labels, where none are named."""
    return _among(labels, on) if on else labels


def _among(labels: Labels, names: tuple[str, ...]) -> Labels:
    return tuple(pair for pair in labels if pair[0] in names)
