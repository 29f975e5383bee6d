"""Which bytes of a segment may be served without computing their CRCs again.

Bytes are trusted if this process wrote them or verified them, as long as they have not left the page
cache since. That they left is noticed when a cached read finds them missing; what the kernel then reads
from the disk, and reads ahead, is unverified, so all trust in the segment ends before such a read begins.
"""


class Trust:
    """Two stretches of one segment: what was written at its end, and what was verified before that."""

    __slots__ = ("_checked_end", "_checked_start", "_written_from", "generation")

    def __init__(self, written_from: int) -> None:
        self._written_from = written_from
        self._checked_start = 0
        self._checked_end = 0
        self.generation = 0
        """How often trust was withdrawn. What was read before the last time proves nothing after it."""

    def covers(self, start: int, end: int) -> bool:
        return start >= self._written_from or (self._checked_start <= start and end <= self._checked_end)

    def add(self, start: int, end: int, generation: int) -> None:
        """The bytes between two positions were read when trust was of that generation, and verified since."""
        if generation != self.generation:
            return
        if start <= self._checked_end and end >= self._checked_start:
            start, end = min(start, self._checked_start), max(end, self._checked_end)
        if end >= self._written_from:
            self._written_from = min(start, self._written_from)
        else:
            self._checked_start, self._checked_end = start, end

    def withdraw(self, size_bytes: int) -> int:
        """Believe nothing of the segment's `size_bytes`; what is written after them is trusted again.

        Answers the generation that begins.
        """
        self._written_from = size_bytes
        self._checked_start = self._checked_end = 0
        self.generation += 1
        return self.generation
