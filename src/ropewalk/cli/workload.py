"""How much a benchmark has to do, and when each piece of it is due.

What a reader could get wrong
    At a given rate a piece is due when the schedule says, not when the one before it is done. Whoever measures
    from that instant also counts the wait that a slow answer puts on those behind it.
"""

from msgspec import Struct


class Piece(Struct, frozen=True, gc=False):
    record_count: int
    due_ms: float


class Workload:
    """Shared by all who send. Ends with the last record or at the end of the time, whichever comes first."""

    def __init__(
        self, started_ms: float, *, count: int | None, duration_ms: float | None, rate: float | None
    ) -> None:
        assert count is not None or duration_ms is not None, "a workload has an end"
        self._started_ms = started_ms
        self._count = count
        self._duration_ms = duration_ms
        self._rate = rate
        self._taken_count = 0

    def take(self, count_max: int, now_ms: float) -> Piece | None:
        """The next records to send, `count_max` at most; None when there is nothing left to do."""
        due_ms = now_ms if self._rate is None else self._started_ms + self._taken_count * 1000 / self._rate
        if self._duration_ms is not None and max(now_ms, due_ms) - self._started_ms >= self._duration_ms:
            return None
        count = count_max if self._count is None else min(count_max, self._count - self._taken_count)
        if count <= 0:
            return None
        self._taken_count += count
        return Piece(count, due_ms)

    def done_fraction(self, now_ms: float) -> float:
        """For a progress bar."""
        by_count = self._taken_count / self._count if self._count else 0.0
        by_time = (now_ms - self._started_ms) / self._duration_ms if self._duration_ms else 0.0
        return min(1.0, max(by_count, by_time))
