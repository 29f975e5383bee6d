"""Which rows came when their window was over. A core.

Spark drops such rows after it has taken rows of one window and group together, and counts what is left of them: three late rows of one
group are one. Where a query counts in windows of one length that follow each other, which row is late can be told from the row alone.

What a reader could get wrong
    A row that is older than the watermark is not late as long as its window is open.
    Spark drops by the watermark that the batch before had, and closes windows by the one that this batch has.
    Anything but such windows is left to Spark's own count: windows that overlap, sessions, joins, `INTERVAL` in place of a text.
"""

import re
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

_WINDOW: Final = re.compile(r"(?<![\w.])window\s*\(", re.IGNORECASE)
_TUMBLING: Final = re.compile(
    r"(?<![\w.])window\s*\(\s*`?(?P<column>\w+)`?\s*,\s*'(?P<length>[^']*)'\s*"
    r"(?:,\s*'(?P<slide>[^']*)'\s*)?(?:,\s*'(?P<start>[^']*)'\s*)?\)",
    re.IGNORECASE,
)
_OTHERS: Final = re.compile(r"\b(session_window|join)\b", re.IGNORECASE)
_SPAN: Final = re.compile(r"(\d+)\s*(week|day|hour|minute|second|millisecond|microsecond)s?", re.IGNORECASE)
_UNITS_US: Final = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


class Windows(Struct, frozen=True):
    """They follow each other without a gap and do not overlap."""

    column: str
    length_us: int
    start_us: int = 0

    def are_over(self, times_us: npt.NDArray[np.int64], watermark_ms: int) -> npt.NDArray[np.bool_]:
        """Of rows with these event times: whether the window of each had ended."""
        ends = times_us - (times_us - self.start_us) % self.length_us + self.length_us
        return np.asarray(ends <= watermark_ms * 1000)

    def condition(self, watermark_ms: int) -> str:
        """The same in SQL."""
        times = f"unix_micros(`{self.column}`)"
        end = f"{times} - pmod({times} - {self.start_us}, {self.length_us}) + {self.length_us}"
        return f"{end} <= {watermark_ms * 1000}"


def windows_of(sql: str, column: str) -> Windows | None:
    """Those by which the query counts; None if they are of another kind, or of another column than that of event time."""
    found = {
        (match["column"], match["length"], match["slide"], match["start"])
        for match in _TUMBLING.finditer(sql)
    }
    if len(found) != 1 or len(_WINDOW.findall(sql)) != len(_TUMBLING.findall(sql)) or _OTHERS.search(sql):
        return None
    ((named, length_text, slide, start_text),) = found
    length_us, start_us = _span_us(length_text), _span_us(start_text or "0 seconds")
    if named.lower() != column.lower() or not length_us or start_us is None:
        return None
    if slide is not None and _span_us(slide) != length_us:
        return None
    return Windows(column, length_us, start_us)


def _span_us(text: str) -> int | None:
    match = _SPAN.fullmatch(text.strip())
    return None if match is None else int(match[1]) * _UNITS_US[match[2].lower()]
