"""Any number of durations in a fixed space, and their percentiles to within one per cent."""

from math import ceil, log
from typing import Final

from msgspec import Struct

_STEP: Final = 1.01
"""Each bucket's bound above the one before it: the error that a percentile may have."""
_SMALLEST_MS: Final = 0.001
_LOG_STEP: Final = log(_STEP)


class LatencySummary(Struct, frozen=True):
    """Milliseconds."""

    p50: float
    p95: float
    p99: float
    p999: float
    max: float


class Latencies:
    """Buckets on a logarithmic scale: from a microsecond to a day there are some 2,500."""

    __slots__ = ("_counts", "_max_ms", "count")

    def __init__(self) -> None:
        self.count = 0
        self._counts: dict[int, int] = {}
        self._max_ms = 0.0

    def add(self, duration_ms: float) -> None:
        bucket = ceil(log(max(duration_ms, _SMALLEST_MS) / _SMALLEST_MS) / _LOG_STEP)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self._max_ms = max(self._max_ms, duration_ms)
        self.count += 1

    def percentile(self, fraction: float) -> float:
        """The smallest bound that at least this fraction of the durations stays within; never above the largest."""
        assert self.count > 0, "nothing was measured"
        left = ceil(self.count * fraction)
        bucket = 0
        for bucket in sorted(self._counts):
            left -= self._counts[bucket]
            if left <= 0:
                break
        return min(_SMALLEST_MS * _STEP**bucket, self._max_ms)

    def summary(self) -> LatencySummary | None:
        """None where nothing was measured."""
        if self.count == 0:
            return None
        p50, p95, p99, p999 = (round(self.percentile(each), 3) for each in (0.5, 0.95, 0.99, 0.999))
        return LatencySummary(p50, p95, p99, p999, round(self._max_ms, 3))
