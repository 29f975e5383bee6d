"""What happens next: a queue of actions in virtual time.

Time is counted in microseconds and jumps from one action to the next. Actions of one instant run in the order in which
they were put here, so a run depends on nothing but its seed.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeVarTuple

Ts = TypeVarTuple("Ts")


class EventQueue:
    __slots__ = ("_heap", "_put_count", "done_count", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self.done_count = 0
        self._put_count = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def now_ms(self) -> int:
        return self.now_us // 1000

    def after(self, delay_us: int, action: Callable[[*Ts], None], *arguments: *Ts) -> None:
        self._put_count += 1
        heappush(self._heap, (self.now_us + delay_us, self._put_count, action, arguments))

    def run_until(self, end_us: int) -> None:
        """Do everything that is due before `end_us`, what comes up meanwhile included."""
        heap = self._heap
        while heap and heap[0][0] < end_us:
            self.now_us, _, action, arguments = heappop(heap)
            self.done_count += 1
            action(*arguments)
        self.now_us = max(self.now_us, end_us)
