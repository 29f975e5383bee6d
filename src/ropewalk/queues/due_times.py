"""When which message, or which receive that waits, is due: one heap of numbers, cleaned lazily.

A number has the time in its upper bits, so that numbers sort by time and take 44 bytes each. Nothing is ever taken out of the middle: whoever
takes a number asks its own state whether it still counts, and sets another if it counts later.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

_PAYLOAD_BITS: Final = 96
_AGE_BITS: Final = 32
_AGE_MASK: Final = (1 << _AGE_BITS) - 1
_PAYLOAD_MASK: Final = (1 << _PAYLOAD_BITS) - 1
_STALE_MIN: Final = 1024
"""Fewer numbers that no longer count are not worth clearing away."""


class DueTimes:
    """`payload` is any number below 2⁹⁶; the core packs an offset or a token into it, and an age."""

    def __init__(self) -> None:
        self._heap: list[int] = []

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, due_ms: int, payload: int) -> None:
        heappush(self._heap, max(due_ms, 0) << _PAYLOAD_BITS | payload)

    def set_messages(self, due_ms: int, offsets: Sequence[int]) -> None:
        """Of messages that have been received and come back together."""
        heap, due = self._heap, max(due_ms, 0) << _PAYLOAD_BITS
        for offset in offsets:
            heappush(heap, due | offset << _AGE_BITS + 1)

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

    def keep(
        self, *, message_counts: Callable[[int, int], bool], token_counts: Callable[[int, int], bool]
    ) -> None:
        """Only those of which these say so, given the offset or the token, and when it is due."""
        self._heap = [
            number
            for number in self._heap
            if (token_counts if number & 1 else message_counts)(
                (number & _PAYLOAD_MASK) >> _AGE_BITS + 1, number >> _PAYLOAD_BITS
            )
        ]
        heapify(self._heap)


def of_message(offset: int, age_ms: int = 0) -> int:
    """The payload of a message; one that was never received brings how old it will be then, so that nobody has to keep when it was sent."""
    return offset << (_AGE_BITS + 1) | min(max(age_ms, 0), _AGE_MASK) << 1


def of_token(token: int) -> int:
    return token << (_AGE_BITS + 1) | 1


def is_token(payload: int) -> bool:
    return bool(payload & 1)


def subject(payload: int) -> int:
    """The offset or the token."""
    return payload >> (_AGE_BITS + 1)


def age_ms(payload: int) -> int:
    return payload >> 1 & _AGE_MASK
