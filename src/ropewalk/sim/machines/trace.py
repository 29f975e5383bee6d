"""What happened in a run, as one hash.

Two runs are the same run exactly if their traces have the same digest, so only facts go in that follow
from the seed: names, numbers, bytes; never an `id()`, an address or the order of a set.
"""

import hashlib
from collections import deque

Fact = str | int | float | bytes | None


class Trace:
    """A running hash, and the last few events in clear for whoever has to explain a failure."""

    def __init__(self, *, recent_count: int = 200) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._count = 0
        self.recent: deque[tuple[Fact, ...]] = deque(maxlen=recent_count)

    def note(self, *facts: Fact) -> None:
        self._hash.update(repr(facts).encode())
        self._count += 1
        self.recent.append(facts)

    def note_bytes(self, data: bytes) -> None:
        """Content too large to be worth showing."""
        self._hash.update(data)

    @property
    def event_count(self) -> int:
        return self._count

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
