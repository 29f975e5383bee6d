"""How much a leader sends to replicas that are not in sync (`leader.replication.throttled.rate`), over all partitions it leads.

What a reader could get wrong
    Those in sync are never held back: producers wait for them.
    Nobody is woken when more may be sent. A replica's fetch ends by itself in half a second at most, and the next one finds it.
"""

from collections.abc import Callable

from ropewalk.base.ports import Clock
from ropewalk.broker.partitions.catch_up import CatchUpBudget


class LeaderThrottle:
    __slots__ = ("_budget", "_clock", "_rate")

    def __init__(self, rate: Callable[[], int], clock: Clock) -> None:
        """`rate` is what is set at the moment, in bytes per second."""
        self._rate = rate
        self._clock = clock
        self._budget = CatchUpBudget(rate())

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is to be sent for now."""
        self._budget.bytes_per_second = self._rate()
        return self._budget.wait_ms(self._clock.monotonic_ms()) > 0

    def charge(self, size_bytes: int) -> None:
        """So much was sent."""
        self._budget.charge(size_bytes, self._clock.monotonic_ms())
