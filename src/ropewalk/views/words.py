"""Offsets, instants, durations and partitions as people write them, on a command line and in a form.

beginning, earliest, start    the oldest record there is
end, latest                   after the newest
17                            offset 17
-5                            five before the end
s@TIME                        the first record at or after TIME, which is milliseconds since 1970 or a date such as 2026-11-15T10:00
"""

import re
from datetime import UTC, datetime
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.views.offsets import Anchor, Where

_WORDS: Final = {
    "beginning": Anchor.BEGINNING,
    "earliest": Anchor.BEGINNING,
    "start": Anchor.BEGINNING,
    "end": Anchor.END,
    "latest": Anchor.END,
}
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_ISO: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")


class NotUnderstood(RopewalkError):
    """What was written is not what was asked for; says what would be."""


def parse_where(text: str) -> Where:
    if text in _WORDS:
        return Where(_WORDS[text])
    if text.startswith("s@"):
        return Where(Anchor.TIME, parse_instant(text[2:]))
    try:
        number = int(text)
    except ValueError:
        raise NotUnderstood(f"{text!r} is not an offset; write beginning, end, 17, -5 or s@TIME") from None
    return Where(Anchor.BEFORE_END, -number) if text.startswith("-") else Where(Anchor.ABSOLUTE, number)


def parse_instant(text: str) -> int:
    """Milliseconds since 1970. A date without a zone is meant in UTC."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise NotUnderstood(
            f"{text!r} is not a time; write milliseconds since 1970 or 2026-11-15T10:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def parse_span(text: str) -> int:
    """Milliseconds, from `90s`, `15m`, `2h`, `7d` or ISO 8601's `P1DT2H`, which Kafka's tools take."""
    if match := re.fullmatch(r"(\d+)(ms|s|m|h|d)", text):
        return int(match[1]) * _UNITS_MS[match[2]]
    if (match := _ISO.fullmatch(text)) and any(match.groups()):
        return sum(
            int(number or 0) * _UNITS_MS[unit]
            for number, unit in zip(match.groups(), ("d", "h", "m", "s"), strict=True)
        )
    raise NotUnderstood(f"{text!r} is not a duration such as 15m, 2h, 7d or PT2H")


def parse_indexes(text: str) -> list[int]:
    """`0,2,5`."""
    try:
        numbers = [int(each) for each in text.split(",")]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0:
        raise NotUnderstood(f"{text!r} is not a list of partitions such as 0,2")
    return sorted(set(numbers))
