"""A byte budget that many share and nobody may overdraw for long. A core: it counts, and says who may go on.

Three things hold bytes: what is being read, requests that are not answered, and answers that are not taken.

What a reader could get wrong
    Taking never fails: what has arrived has arrived. The budget only says when to stop taking more in.
    When it is spent, those who hold much stop first; whoever holds little goes on, so that a few large clients do not
    stop all the others. Only when it is overdrawn by half does everybody stop.
    Of those who stopped in the middle of something large, one is always let on to its end. Otherwise twenty large
    requests, each half read, would wait for each other for ever.
"""

import asyncio
from collections import deque
from typing import Protocol

from ropewalk.base.limits import BUDGET_SMALL_BYTES


class Reader(Protocol):
    """Somebody who takes bytes in. Compared by identity."""

    def on_room(self) -> None:
        """There may be room; ask again."""


class ByteBudget:
    __slots__ = ("_favoured", "_grants", "_waiting", "bytes_max", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self._waiting: dict[Reader, None] = {}
        self._grants: deque[tuple[asyncio.Future[None], int]] = deque()
        self._favoured: Reader | None = None

    @property
    def is_spent(self) -> bool:
        return self.held_bytes >= self.bytes_max

    @property
    def is_overdrawn(self) -> bool:
        return self.held_bytes >= self.bytes_max + self.bytes_max // 2

    @property
    def waiting_count(self) -> int:
        """Those who would take more if there were room."""
        return len(self._waiting) + sum(not granted.done() for granted, _ in self._grants)

    def take(self, count_bytes: int) -> None:
        assert count_bytes >= 0, "fewer than no bytes cannot be taken"
        self.held_bytes += count_bytes

    def give_back(self, count_bytes: int) -> None:
        self.held_bytes -= count_bytes
        assert self.held_bytes >= 0, "more was given back than taken"
        if self._grants or self._waiting or self._favoured is not None:
            self._pass_on()

    def grant(self, count_bytes: int) -> "asyncio.Future[None]":
        """Done when there is room, in the order of asking; the bytes are taken then. Cancel it to ask no more."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._grants.append((granted, count_bytes))
        self._pass_on()
        return granted

    def admits(self, reader: Reader, held_bytes: int) -> bool:
        """Whether the reader, who holds so much, may take in more. If not it is called when there is room."""
        if not self.is_spent or (held_bytes <= BUDGET_SMALL_BYTES and not self.is_overdrawn):
            return True
        if self._favoured is None or self._favoured is reader:
            self._favoured = reader
            self._waiting.pop(reader, None)
            return True
        self._waiting[reader] = None
        return False

    def wait(self, reader: Reader) -> None:
        """Call the reader when there is room; asking twice is asking once."""
        self._waiting[reader] = None

    def leave(self, reader: Reader) -> None:
        """The reader has come to an end of what it took in, or has gone; another may be let on."""
        self._waiting.pop(reader, None)
        if self._favoured is reader:
            self._favoured = next(iter(self._waiting), None)
            if self._favoured is not None:
                del self._waiting[self._favoured]
                self._favoured.on_room()

    def _pass_on(self) -> None:
        while self._grants and (self._grants[0][0].done() or not self.is_spent):
            granted, count_bytes = self._grants.popleft()
            if not granted.done():
                self.held_bytes += count_bytes
                granted.set_result(None)
        if not self.is_spent:
            self._favoured = None
            waiting, self._waiting = self._waiting, {}
            for reader in waiting:
                reader.on_room()
