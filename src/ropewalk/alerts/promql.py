"""Expressions as Prometheus reads them."""

from typing import Final, assert_never

from ropewalk.alerts.expressions import (
    Both,
    Compared,
    Condition,
    Either,
    Gathered,
    Magnitude,
    Predicted,
    Quantile,
    Quotient,
    Rate,
    Seen,
    Series,
    Vector,
)

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def promql(expression: Vector | Condition) -> str:
    match expression:
        case Series(where=where):
            labels = ", ".join(f'{name}="{_escaped(value)}"' for name, value in where)
            return f"{expression.name}{{{labels}}}" if labels else expression.name
        case Seen(job=job):
            return f'{expression.name}{{job="{_escaped(job)}"}}'
        case Rate(of=of, window_s=window_s):
            return f"rate({promql(of)}[{duration(window_s)}])"
        case Predicted(of=of, window_s=window_s, ahead_s=ahead_s):
            return f"predict_linear({promql(of)}[{duration(window_s)}], {ahead_s})"
        case Gathered(how=how, of=of, by=by):
            return f"{how.value}({promql(of)})" + (f" by ({', '.join(by)})" if by else "")
        case Quantile(quantile=quantile, of=of):
            return f"histogram_quantile({number(quantile)}, {promql(of)})"
        case Magnitude(of=of):
            return f"abs({promql(of)})"
        case Quotient(upper=upper, lower=lower):
            return f"{promql(upper)} / {promql(lower)}"
        case Compared(of=of, sign=sign, limit=limit):
            return f"{promql(of)} {sign.value} {number(limit)}"
        case Both(first=first, second=second, on=on):
            matching = f" on ({', '.join(on)})" if on else ""
            return f"{_grouped(first)} and{matching} {_grouped(second)}"
        case Either(first=first, second=second):
            return f"{_grouped(first)} or {_grouped(second)}"
        case _:
            assert_never(expression)


def duration(seconds: int) -> str:
    """In the largest unit that leaves nothing over."""
    for size, unit in _UNITS:
        if seconds % size == 0 and seconds >= size:
            return f"{seconds // size}{unit}"
    return "0s"


def number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)


def _grouped(condition: Condition) -> str:
    """`and` binds tighter than `or`, and comparisons tighter than both."""
    return promql(condition) if isinstance(condition, Compared) else f"({promql(condition)})"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
