"""In which order messages are given out: the lowest offset first, and what the other orders have in common with that.

A line is told of every message that may be given out, and of every change. It decides nothing about time: a message is hidden until it is
said to be visible. `take` only looks; what is given out is told as `hide`.
"""

from collections.abc import Iterator
from typing import Protocol

from pyroaring import BitMap64


class Line(Protocol):
    def know(self, offset: int, group: str) -> None:
        """The message was read from the log, in order of offsets; hidden, until it is said to be visible."""

    def show(self, offset: int) -> None:
        """It is visible. A line that needs groups lets be what it does not know yet."""

    def hide(self, offset: int, *, is_given: bool) -> None:
        """It is in flight (`is_given`), or rests."""

    def land(self, offset: int) -> None:
        """It is in flight no longer; whether it is visible is told apart."""

    def drop(self, offset: int) -> None:
        """It is settled."""

    def take(self) -> Iterator[int]:
        """Those that may be given out together, in order. Nothing may change while it runs."""

    def has_more(self) -> bool:
        """Whether `take` would find one."""

    def looks_further(self) -> bool:
        """Whether it would give something else if it knew more of the log."""

    def known_count(self) -> int:
        """Messages whose groups are kept; 0 where groups do not matter."""


class PlainLine:
    """The lowest offset first: what comes back has waited longest."""

    def __init__(self) -> None:
        self._visible = BitMap64()

    def know(self, offset: int, group: str) -> None:
        pass

    def show(self, offset: int) -> None:
        self._visible.add(offset)

    def hide(self, offset: int, *, is_given: bool) -> None:  # noqa: ARG002
        self._visible.discard(offset)

    def land(self, offset: int) -> None:
        pass

    def drop(self, offset: int) -> None:
        self._visible.discard(offset)

    def take(self) -> Iterator[int]:
        return iter(self._visible)

    def has_more(self) -> bool:
        return bool(self._visible)

    def looks_further(self) -> bool:
        return False

    def known_count(self) -> int:
        return 0
