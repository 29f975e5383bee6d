"""The time that queues are hosted by."""

from typing import Protocol


class Time(Protocol):
    """Counts from 1970, and never jumps."""

    def now_ms(self) -> int: ...
