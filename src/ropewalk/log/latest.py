"""The last offset of every key in a part of a log, in bounded memory.

Keys are kept as digests of 16 bytes, so that their length does not matter. Two keys with one digest would lose a
record; that is less likely than any fault of the hardware, and nobody can bring it about without breaking BLAKE2.
"""

from hashlib import blake2b
from typing import Final

_DIGEST_BYTES: Final = 16
_ABSENT: Final = -1


class LatestOffsets:
    __slots__ = ("_count_max", "_offsets")

    def __init__(self, count_max: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._count_max = count_max

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self._count_max

    def note(self, key: bytes, offset: int) -> None:
        """A record of the key stands at `offset`, above all noted before."""
        self._offsets[blake2b(key, digest_size=_DIGEST_BYTES).digest()] = offset

    def has_later(self, key: bytes, offset: int) -> bool:
        """Whether a record of the key stands above `offset`."""
        return self._offsets.get(blake2b(key, digest_size=_DIGEST_BYTES).digest(), _ABSENT) > offset
