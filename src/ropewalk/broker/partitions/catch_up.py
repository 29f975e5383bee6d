"""How many bytes replicas that are behind may copy: their own budget, so that those in step and clients do not notice.

A core: time comes in. What was copied is charged afterwards, so the budget may be overdrawn by one answer. The rate may be changed
at any time, and then applies to what is owed, too: whoever was told to wait for days need not, once the rate is raised.
"""

from ropewalk.base.limits import CATCH_UP_BURST_MS


class CatchUpBudget:
    __slots__ = ("_charged_at_ms", "_owed_bytes", "bytes_per_second")

    def __init__(self, bytes_per_second: int) -> None:
        self.bytes_per_second = bytes_per_second
        self._owed_bytes = 0.0
        self._charged_at_ms = 0.0

    def wait_ms(self, now_ms: float) -> float:
        """How long until more may be copied; 0 if it may now."""
        return max(0.0, 1000 * self._owed(now_ms) / self._rate - CATCH_UP_BURST_MS)

    def charge(self, size_bytes: int, now_ms: float) -> None:
        self._owed_bytes = self._owed(now_ms) + size_bytes
        self._charged_at_ms = now_ms

    @property
    def _rate(self) -> int:
        return max(1, self.bytes_per_second)

    def _owed(self, now_ms: float) -> float:
        return max(0.0, self._owed_bytes - (now_ms - self._charged_at_ms) * self._rate / 1000)
