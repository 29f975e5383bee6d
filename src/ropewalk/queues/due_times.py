"""When which message, or which receive that waits, is due: one heap of numbers, cleaned lazily.

A number has the time in its upper bits, so that numbers sort by time and take 44 bytes each. Nothing is ever taken out of the middle: whoever
takes a number asks its own state whether it still counts, and sets another if it counts later.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

_PAYLOAD_BITS: Final = 84
_DELAY_BITS: Final = 20
_DELAY_MASK: Final = (1 << _DELAY_BITS) - 1
_PAYLOAD_MASK: Final = (1 << _PAYLOAD_BITS) - 1
_STALE_MIN: Final = 1024
"""Fewer numbers that no longer count are not worth clearing away."""


class DueTimes:
    """`payload` is any number below 2⁸⁴; the core packs an offset or a token into it, and a delay."""

    def __init__(self) -> None:
        self._heap: list[int] = []

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, due_ms: int, payload: int) -> None:
        heappush(self._heap, max(due_ms, 0) << _PAYLOAD_BITS | payload)

    def next_ms(self) -> int | None:
        return self._heap[0] >> _PAYLOAD_BITS if self._heap else None

    def pop_due(self, log_ms: int) -> tuple[int, int] | None:
        """When it was due, and the payload."""
        if not self._heap or self._heap[0] >> _PAYLOAD_BITS > log_ms:
            return None
        number = heappop(self._heap)
        return number >> _PAYLOAD_BITS, number & _PAYLOAD_MASK

    def is_stale(self, live_count: int) -> bool:
        """Whether so many numbers have been replaced that it pays to begin anew with those that count."""
        return len(self._heap) > 2 * live_count + _STALE_MIN

    def keep(self, counts: Callable[[int, int], bool]) -> None:
        """Only those of which `counts` says so, given when they are due and the payload."""
        self._heap = [
            number for number in self._heap if counts(number >> _PAYLOAD_BITS, number & _PAYLOAD_MASK)
        ]
        heapify(self._heap)


def of_message(offset: int, delay_ms: int = 0) -> int:
    """The payload of a message; one that was never received brings its delay, by which it is known when it was sent."""
    return offset << (_DELAY_BITS + 1) | delay_ms << 1


def of_token(token: int) -> int:
    return token << (_DELAY_BITS + 1) | 1


def is_token(payload: int) -> bool:
    return bool(payload & 1)


def subject(payload: int) -> int:
    """The offset or the token."""
    return payload >> (_DELAY_BITS + 1)


def delay_ms(payload: int) -> int:
    return payload >> 1 & _DELAY_MASK
