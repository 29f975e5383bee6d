"""Which bytes of a segment may be served without computing their CRCs again.

Bytes are trusted if this process wrote them or verified them, as long as they have not left the page
cache since. That they left is noticed when a cached read finds them missing; what the kernel then reads
from the disk, and reads ahead, is unverified, so all trust in the segment ends before such a read begins.
"""


class Trust:
    """Two stretches of one segment: what was written at its end, and what was verified before that."""

    __slots__ = ("_checked_end", "_checked_start", "_written_from")

    def __init__(self, written_from: int) -> None:
        self._written_from = written_from
        self._checked_start = 0
        self._checked_end = 0

    def covers(self, start: int, end: int) -> bool:
        return start >= self._written_from or (self._checked_start <= start and end <= self._checked_end)

    def add(self, start: int, end: int) -> None:
        """The bytes between two positions were verified."""
        if start <= self._checked_end and end >= self._checked_start:
            start, end = min(start, self._checked_start), max(end, self._checked_end)
        if end >= self._written_from:
            self._written_from = min(start, self._written_from)
        else:
            self._checked_start, self._checked_end = start, end

    def withdraw(self, size_bytes: int) -> None:
        """Believe nothing of the segment's `size_bytes`; what is written after them is trusted again."""
        self._written_from = size_bytes
        self._checked_start = self._checked_end = 0
