"""How long things took, in buckets: syncs, requests, turns of the loop."""

from bisect import bisect_left
from typing import Final

BOUNDS_MS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0, 5000.0)


class Durations:
    """A histogram with fixed bounds; the last bucket has none. A bound belongs to the bucket below it."""

    __slots__ = ("count", "counts", "max_ms", "total_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.count = 0
        self.total_ms = 0.0
        self.max_ms = 0.0

    def add(self, duration_ms: float) -> None:
        self.counts[bisect_left(BOUNDS_MS, duration_ms)] += 1
        self.count += 1
        self.total_ms += duration_ms
        if duration_ms > self.max_ms:
            self.max_ms = duration_ms
