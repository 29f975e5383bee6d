"""Which messages are held by whom for how long: when each has to be extended, by how much, and when it is lost.

A core: it is told the time and answers what is due. `queue.py` asks the server.

What a reader could get wrong
    Times are the client's own. Of an extension it is that before the request, so that the server's deadline is never earlier; of a receive
    that of the answer, since nobody knows for how long it waited. So messages are extended when half of their time is over.
    A message may be hidden for twelve hours in all. The last extension is shorter, and afterwards there is none.
"""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

from msgspec import Struct

from ropewalk.base.limits import QUEUE_VISIBILITY_MS_MAX

K = TypeVar("K", bound=Hashable)

_EXTENDS_AT: Final = 0.5
"""Of the visibility, so that a second attempt is in time if the first fails."""
_AGAIN_MS: Final = 1_000
"""Before an extension that failed is tried again."""


class _Held(Struct):
    visibility_ms: int
    last_ms: float
    """Twelve hours after the receive."""
    until_ms: float
    due_ms: float
    note: int = 0
    """Which of the notes in the heap counts: the last one."""


class Holding(Generic[K]):
    def __init__(self) -> None:
        self._held: dict[K, _Held] = {}
        self._due: list[tuple[float, int, K]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: K) -> bool:
        return key in self._held

    def hold(self, key: K, *, received_ms: float, until_ms: float, visibility_ms: int) -> None:
        """`received_ms` counts for the twelve hours, `until_ms` is how long it is hidden by now."""
        last_ms = received_ms + QUEUE_VISIBILITY_MS_MAX
        held = _Held(visibility_ms, last_ms, until_ms, until_ms - visibility_ms * (1 - _EXTENDS_AT))
        self._held[key] = held
        self._note(key, held)

    def drop(self, key: K) -> None:
        """Nobody holds it any more."""
        self._held.pop(key, None)
        if (
            len(self._due) > 2 * len(self._held) + 8
        ):  # what was dropped is not kept for longer than what is held
            self._due = [entry for entry in self._due if self._is_current(entry)]
            heapify(self._due)

    def until_ms(self, key: K) -> float:
        return self._held[key].until_ms

    def next_due_ms(self) -> float | None:
        """When the next extension is due; None: nothing is held."""
        while self._due and not self._is_current(self._due[0]):
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def take_due(self, now_ms: float) -> list[tuple[K, int]]:
        """What to extend now, each with the seconds to ask for. Say of each what became of it: `extended`, `failed` or `drop`."""
        found: list[tuple[K, int]] = []
        while (due_ms := self.next_due_ms()) is not None and due_ms <= now_ms:
            key = heappop(self._due)[2]
            held = self._held[key]
            seconds = int(min(held.visibility_ms, held.last_ms - now_ms) // 1000)
            if now_ms + seconds * 1000 <= held.until_ms or seconds < 1:
                self.drop(key)  # its twelve hours are nearly over: nothing can be won any more
            else:
                found.append((key, seconds))
        return found

    def extended(self, key: K, *, until_ms: float) -> None:
        held = self._held.get(key)
        if held is None:  # it was dropped while the server was asked
            return
        held.until_ms = until_ms
        held.due_ms = until_ms - held.visibility_ms * (1 - _EXTENDS_AT)
        self._note(key, held)

    def failed(self, key: K, now_ms: float) -> None:
        """Nobody knows; asked again soon, as long as it is hidden by what is known."""
        held = self._held.get(key)
        if held is None:
            return
        if now_ms >= held.until_ms:
            self.drop(key)
            return
        held.due_ms = now_ms + min(_AGAIN_MS, held.visibility_ms * _EXTENDS_AT)
        self._note(key, held)

    def _note(self, key: K, held: _Held) -> None:
        self._count += 1
        held.note = self._count
        heappush(self._due, (held.due_ms, self._count, key))

    def _is_current(self, entry: tuple[float, int, K]) -> bool:
        held = self._held.get(entry[2])
        return held is not None and held.note == entry[1]
