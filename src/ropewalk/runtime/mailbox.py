"""A bounded way from any thread to one event loop, without a hop for each thing that takes it.

What a reader could get wrong
    The loop is woken once for all that lies in the box, not once for each: that is what the box is for.
    What was taken out counts until `on_taken`; from then on it counts as far as `held_bytes` says.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    def __init__(self, *, bytes_max: int, held_bytes: Callable[[], int], wake: Callable[[], object]) -> None:
        """`held_bytes` is what lies behind the box; `wake` has the loop come and empty it."""
        self._bytes_max = bytes_max
        self._held_bytes = held_bytes
        self._wake = wake
        self._lock = threading.Lock()
        self._has_room = threading.Condition(self._lock)
        self._items: list[T] = []
        self._bytes = 0
        self._is_awake = False
        self._is_closed = False
        self._waiting_count = 0

    def put(self, item: T, size_bytes: int, *, timeout_s: float) -> bool:
        """Wait for room, and leave the item; False if there was none in time, or the box is closed."""
        with self._lock:
            if self._bytes + self._held_bytes() + size_bytes > self._bytes_max:
                self._waiting_count += 1
                try:
                    if not self._has_room.wait_for(
                        lambda: self._is_closed or self._fits(size_bytes), timeout_s
                    ):
                        return False
                finally:
                    self._waiting_count -= 1
            if self._is_closed:
                return False
            self._items.append(item)
            self._bytes += size_bytes
            is_asleep, self._is_awake = not self._is_awake, True
        if is_asleep:
            self._wake()
        return True

    def take(self) -> list[T]:
        """All there is, in order."""
        with self._lock:
            self._is_awake = False
            items, self._items = self._items, []
            return items

    def on_taken(self, size_bytes: int) -> None:
        """What `take` returned lies behind the box."""
        with self._lock:
            self._bytes -= size_bytes

    def on_room(self) -> None:
        """There may be room; whoever waits for it looks again."""
        if self._waiting_count:
            with self._lock:
                self._has_room.notify_all()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._has_room.notify_all()

    def _fits(self, size_bytes: int) -> bool:
        """An empty box takes everything, however large."""
        held = self._bytes + self._held_bytes()
        return not held or held + size_bytes <= self._bytes_max
