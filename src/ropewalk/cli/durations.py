"""Durations as people write them."""

import re
from typing import Final

import typer

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_ISO: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


def parse_duration(text: str, *, option: str) -> int:
    """Milliseconds, from `90s`, `15m`, `2h`, `7d` or ISO 8601's `P1DT2H`, which Kafka's tools take."""
    if match := re.fullmatch(r"(\d+)(ms|s|m|h|d)", text):
        return int(match[1]) * _UNITS_MS[match[2]]
    if (match := _ISO.fullmatch(text)) and any(match.groups()):
        return sum(
            int(number or 0) * _UNITS_MS[unit]
            for number, unit in zip(match.groups(), ("d", "h", "m", "s"), strict=True)
        )
    raise typer.BadParameter(f"{text!r} is not a duration such as 15m, 2h, 7d or PT2H", param_hint=option)
