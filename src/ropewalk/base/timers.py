"""Many alarms, of which the next is found at once.

Most alarms are sessions that every heartbeat moves further into the future. Moving one later is a write to a
dictionary; its place in the heap is corrected when it comes up. So a heartbeat costs no heap operation.

Invariant: for every alarm that is set, the heap has an entry no later than its time.
"""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_STALE_ENTRIES_MIN: Final = 64
"""Below this, entries of cancelled alarms are not worth clearing away before they come up."""


class Timers(Generic[K]):
    def __init__(self) -> None:
        self._due_at_ms: dict[K, int] = {}
        self._entries: dict[K, tuple[int, int]] = {}
        """The entry in the heap that counts for an alarm; it may have others, which are ignored."""
        self._heap: list[tuple[int, int, K]] = []
        self._serial = 0

    def set(self, key: K, due_at_ms: int) -> None:
        """Whatever it was set to before."""
        self._due_at_ms[key] = due_at_ms
        entry = self._entries.get(key)
        if entry is None or entry[0] > due_at_ms:
            self._push(key, due_at_ms)

    def set_earlier(self, key: K, due_at_ms: int) -> None:
        """As `set`, unless it is due before that already."""
        if due_at_ms < self._due_at_ms.get(key, due_at_ms + 1):
            self.set(key, due_at_ms)

    def cancel(self, key: K) -> None:
        """What is not set is fine."""
        self._due_at_ms.pop(key, None)
        if len(self._heap) > 2 * len(self._due_at_ms) + _STALE_ENTRIES_MIN:
            self._rebuild()

    def next_due_at_ms(self) -> int | None:
        while self._heap:
            due_at_ms, serial, key = self._heap[0]
            if self._entries.get(key) == (due_at_ms, serial) and self._due_at_ms.get(key) == due_at_ms:
                return due_at_ms
            self._correct_first()
        return None

    def pop_due(self, now_ms: int) -> K | None:
        """An alarm that is due, which is no longer set then; the longest due first."""
        due_at_ms = self.next_due_at_ms()
        if due_at_ms is None or due_at_ms > now_ms:
            return None
        _, _, key = heappop(self._heap)
        del self._entries[key], self._due_at_ms[key]
        return key

    def _correct_first(self) -> None:
        due_at_ms, serial, key = heappop(self._heap)
        if self._entries.get(key) != (due_at_ms, serial):
            return
        del self._entries[key]
        later_ms = self._due_at_ms.get(key)
        if later_ms is not None:
            self._push(key, later_ms)

    def _push(self, key: K, due_at_ms: int) -> None:
        self._serial += 1
        self._entries[key] = (due_at_ms, self._serial)
        heappush(self._heap, (due_at_ms, self._serial, key))

    def _rebuild(self) -> None:
        """Costs what was set since the last time, so cancelling stays cheap however many alarms there are."""
        self._heap = []
        self._entries = {}
        for key, due_at_ms in self._due_at_ms.items():
            self._serial += 1
            self._entries[key] = (due_at_ms, self._serial)
            self._heap.append((due_at_ms, self._serial, key))
        heapify(self._heap)
