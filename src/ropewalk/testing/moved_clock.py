"""The machine's clocks, moved ahead when a test says so: what a node does after a year can be seen at once.

What a reader could get wrong
    Both clocks move. A wall clock that jumps alone is doubted for a day (`believed_clock.py`), and deadlines go by the other one; when both
    move, so much time has passed for the node. Whoever had to be heard from meanwhile was not: members of groups are gone, connections idle.
    Timers of the event loop are not moved: what a node looks at from time to time it looks at as often as before. What waits for one time of
    its own, as groups and transactions do, is told (`Node.on_clock_moved`).
"""

from datetime import timedelta

from ropewalk.runtime.clock import SystemClock


class MovedClock:
    def __init__(self) -> None:
        self._clock = SystemClock()
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._ahead_ms

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms() + self._ahead_ms

    def advance(self, by: timedelta) -> None:
        """Raises `ValueError` for a time that lies before: clocks for deadlines never go back."""
        ahead_ms = by // timedelta(milliseconds=1)
        if ahead_ms < 0:
            raise ValueError(f"a clock is moved ahead, not back; {by} was asked for")
        self._ahead_ms += ahead_ms
