"""Which deduplication ids a FIFO queue has seen in the last five minutes, and which message came first with each.

The truth is in the headers of the messages: a new leader reads those that were sent since the last snapshot. Deletes and purges change nothing here.
Time is wall time, so that ids are forgotten when the clocks say, and a change of leader shifts that by no more than clocks differ.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from ropewalk.base.limits import (
    QUEUE_DEDUPLICATION_IDS_MAX,
    QUEUE_DEDUPLICATION_MS,
    QUEUE_DEDUPLICATION_REST_MS,
)

KEY_BYTES: Final = 16


def deduplication_key(deduplication_id: str, group: str) -> bytes:
    """A digest, since ids may be long and a million are kept. `group` is empty where ids count for the whole queue."""
    text = deduplication_id.encode()
    return blake2b(len(text).to_bytes(4, "big") + text + group.encode(), digest_size=KEY_BYTES).digest()


class Deduplication:
    def __init__(self) -> None:
        self._first: dict[bytes, tuple[int, int]] = {}
        """Offset, and when it was sent; the oldest first."""

    def __len__(self) -> int:
        return len(self._first)

    def __iter__(self) -> Iterator[tuple[bytes, int, int]]:
        for key, (offset, sent_at_ms) in self._first.items():
            yield key, offset, sent_at_ms

    @property
    def is_full(self) -> bool:
        return len(self._first) >= QUEUE_DEDUPLICATION_IDS_MAX

    def first_with(self, key: bytes, now_ms: int) -> int | None:
        """The offset of the first message with this id; None: it is new."""
        known = self._first.get(key)
        if known is None or known[1] + QUEUE_DEDUPLICATION_MS <= now_ms:
            return None
        return known[0]

    def remember(self, key: bytes, offset: int, sent_at_ms: int) -> None:
        """The latest stands last, also if its id was there before and had run out."""
        self._first.pop(key, None)
        self._first[key] = (offset, sent_at_ms)

    def forgets_at_ms(self) -> int | None:
        """When ids have run out for a while, so that those of a minute go together; None: there are none."""
        first = next(iter(self._first.values()), None)
        return None if first is None else first[1] + QUEUE_DEDUPLICATION_MS + QUEUE_DEDUPLICATION_REST_MS

    def forget(self, now_ms: int) -> None:
        """What has run out. A message of a clock that was ahead keeps those behind it a little longer, which does no harm."""
        while self._first:
            key = next(iter(self._first))
            if self._first[key][1] + QUEUE_DEDUPLICATION_MS > now_ms:
                return
            del self._first[key]
