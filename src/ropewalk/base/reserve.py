"""What a full disk is emptied with: room that is kept back for writes that make room, as a port.

`runtime/reserve.py` keeps it in a file. A disk in memory needs none.
"""

from enum import Enum
from errno import EDQUOT, ENOSPC
from typing import Final, Protocol

from ropewalk.base.ports import Disk, File

_FULL: Final = frozenset({ENOSPC, EDQUOT})


def is_no_room(error: OSError) -> bool:
    """Whether the disk, or what its owner may use of it, is full."""
    return error.errno in _FULL


class Purpose(Enum):
    """What a write is for that may use the reserve. The value is the share of it that is left to others."""

    DELETING = 0.0
    """Without it nothing can be deleted."""
    GOING_ON = 0.25
    """Without it the node would not start, or nobody could lead what others no longer do."""
    CHANGING = 0.5
    """What people ask for that makes nothing: settings, quotas."""


class Reserve(Protocol):
    @property
    def is_kept(self) -> bool:
        """False: nothing is kept back, and the disk never counts as full."""

    @property
    def is_full(self) -> bool:
        """Whether whoever has no right to the reserve is to be refused."""

    @property
    def size_bytes(self) -> int:
        """What is left of it."""

    @property
    def whole_bytes(self) -> int:
        """How large it is to be."""

    def disk_for(self, purpose: Purpose) -> Disk:
        """The disk, for whoever may use the reserve."""

    def file_for(self, file: File, purpose: Purpose) -> File:
        """The same for a file that is open."""

    def on_no_room(self) -> None:
        """A write met the end of the disk."""

    def look(self, *, partition_count: int) -> None:
        """See whether there is room, and make the reserve as large as it is wanted for so many partitions.

        Blocks, and raises what is no matter of room. Cheap while all is well.
        """


class NoReserve:
    """For a disk of which nothing is kept back."""

    is_kept = False
    is_full = False
    size_bytes = 0
    whole_bytes = 0

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def disk_for(self, purpose: Purpose) -> Disk:  # noqa: ARG002  nobody has a right to more than others
        return self._disk

    def file_for(self, file: File, purpose: Purpose) -> File:  # noqa: ARG002  as above
        return file

    def on_no_room(self) -> None:
        """It is for whoever met it to say so."""

    def look(self, *, partition_count: int) -> None:
        """There is nothing to keep up."""
