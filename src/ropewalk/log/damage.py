"""Ranges of a log that were durable once and are not valid any more.

They are found by recovery below the recovery point, by reads and by the scrub. Nothing is cut there: the
range answers `StorageFailed`, everything around it is served. What a node knows of damage outlives it (`known_damage`).
"""

import errno
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import StorageFailed

NO_SEGMENT: Final = -1
"""As `segment_base_offset`: the file that should hold the range is not there."""


class DamagedRange(Struct, frozen=True, gc=False):
    start_offset: int
    end_offset: int
    segment_base_offset: int
    start_position: int
    end_position: int


_BAD_SECTOR: Final = frozenset({errno.EIO, errno.EBADMSG, errno.EUCLEAN})


def is_bad_sector(error: OSError) -> bool:
    """Whether a disk, or a file system's own checksum, refuses to tell what is there. All around it may be well."""
    return error.errno in _BAD_SECTOR


class DamagedRanges:
    """Readers in the disk pool note what they find while the event loop looks: every change is one list operation."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[DamagedRange] = []

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[DamagedRange]:
        return iter(tuple(self._ranges))

    def note(self, found: DamagedRange) -> None:
        if found.start_offset < found.end_offset and found not in self._ranges:
            self._ranges.append(found)

    def refuse(self, offset: int, name: str) -> None:
        """Raise `StorageFailed` if `offset` lies in a damaged range."""
        for damaged in self:
            if damaged.start_offset <= offset < damaged.end_offset:
                raise StorageFailed(
                    f"{name}: offsets {damaged.start_offset} to {damaged.end_offset} are damaged on disk"
                )

    def keep_within(self, *, start_offset: int, end_offset: int) -> None:
        """Forget what was deleted or truncated."""
        self._ranges = [
            damaged
            for damaged in self._ranges
            if damaged.end_offset > start_offset and damaged.start_offset < end_offset
        ]
