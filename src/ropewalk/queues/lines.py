"""In which order messages are given out: the lowest offset first, and what the other orders have in common with that.

A line is told of every message that may be given out, and of every change. It decides nothing about time: a message is hidden until it is
said to be visible. `take` only looks; what is given out is told as `give`.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from pyroaring import BitMap64


class Line(Protocol):
    def know(self, offset: int, group: str) -> None:
        """The message was read from the log, in order of offsets; hidden, until it is said to be visible."""

    def show(self, offsets: Sequence[int]) -> None:
        """They are visible. A line that needs groups lets be what it does not know yet."""

    def give(self, offsets: Sequence[int]) -> None:
        """They are in flight."""

    def hide(self, offset: int) -> None:
        """It rests, or waits to be moved."""

    def land(self, offset: int) -> None:
        """It is in flight no longer; whether it is visible is told apart."""

    def drop(self, offsets: Sequence[int]) -> None:
        """They are settled, whether or not they were in flight."""

    def take(self) -> Iterator[int]:
        """Those that may be given out together, in order. Nothing may change while it runs."""

    def among(self, offsets: tuple[int, ...]) -> tuple[int, ...]:
        """Those of them that may be given out, if no others are; both in order of offsets."""

    def can_give(self, count: int) -> bool:
        """Whether `take` would find so many."""

    def looks_further(self) -> bool:
        """Whether it would give something else if it knew more of the log."""

    def known_count(self) -> int:
        """Messages whose groups are kept; 0 where groups do not matter."""

    def held_up_by(self, offset: int) -> int | None:
        """The first message before it in its group that is hidden, so that it is not given out; None: none is known."""

    def hidden_group_count(self) -> int:
        """Groups that are known and of which nothing can be given out: their first message is in flight or delayed. 0 where groups hold nothing up."""


class PlainLine:
    """The lowest offset first: what comes back has waited longest."""

    def __init__(self) -> None:
        self._visible = BitMap64()

    def know(self, offset: int, group: str) -> None:
        pass

    def show(self, offsets: Sequence[int]) -> None:
        self._visible.update(offsets)

    def give(self, offsets: Sequence[int]) -> None:
        self.drop(offsets)

    def hide(self, offset: int) -> None:
        self._visible.discard(offset)

    def land(self, offset: int) -> None:
        pass

    def drop(self, offsets: Sequence[int]) -> None:
        discard = self._visible.discard
        for offset in offsets:
            discard(offset)

    def take(self) -> Iterator[int]:
        return iter(self._visible)

    def among(self, offsets: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([offset for offset in offsets if offset in self._visible])

    def can_give(self, count: int) -> bool:
        return len(self._visible) >= count

    def looks_further(self) -> bool:
        return False

    def known_count(self) -> int:
        return 0

    def held_up_by(self, offset: int) -> int | None:  # noqa: ARG002
        return None

    def hidden_group_count(self) -> int:
        return 0
