"""How many bytes replicas that are behind may copy: their own budget, so that those in step and clients do not notice.

A core: time comes in. What was copied is charged afterwards, so the budget may be overdrawn by one answer.
"""

from ropewalk.base.limits import CATCH_UP_BURST_MS


class CatchUpBudget:
    __slots__ = ("_free_at_ms", "bytes_per_second")

    def __init__(self, bytes_per_second: int) -> None:
        self.bytes_per_second = bytes_per_second
        self._free_at_ms = 0.0

    def wait_ms(self, now_ms: float) -> float:
        """How long until more may be copied; 0 if it may now."""
        return max(0.0, self._free_at_ms - now_ms - CATCH_UP_BURST_MS)

    def charge(self, size_bytes: int, now_ms: float) -> None:
        self._free_at_ms = max(self._free_at_ms, now_ms) + 1000 * size_bytes / max(1, self.bytes_per_second)
