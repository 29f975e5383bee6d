"""How bytes get into a segment's file: whole, or not at all.

Invariants
    What a failed write left is cut off before the next write; if that fails, nothing more is written until the log
    is opened again.
    A file with unsynced bytes stays open: the kernel reports a failed write-back to those who had it open.
"""

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ports import File
from ropewalk.log.segment import Segment
from ropewalk.log.storage import Storage


class Writer:
    __slots__ = ("_name", "_storage", "refusal")

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name
        self.refusal = ""
        """Why nothing may be written; empty while something may."""

    def write(self, segment: Segment, batch: memoryview, size_bytes: int) -> None:
        """Put a batch at the end of the active segment; `StorageFailed` if the disk does not take it."""
        files = self._storage.files
        try:
            file = files.get(segment.path)
            if not segment.is_pinned:
                files.pin(segment.path, file)
                segment.is_pinned = True
            if segment.is_settled:
                segment.is_settled = False
                # To append to a page that has left the cache, the kernel reads it back, unverified.
                if segment.size_bytes and file.read_cached(segment.size_bytes - 1, 1) is None:
                    segment.trust.withdraw(segment.size_bytes)
        except OSError as error:
            raise StorageFailed(f"{self._name}: {error.strerror or error}") from error
        try:
            written = file.append(batch)
        except OSError as error:
            self._cut_back(segment, file)
            raise StorageFailed(f"{self._name}: {error.strerror or error}") from error
        if written != size_bytes:
            self._cut_back(segment, file)
            raise StorageFailed(
                f"{self._name}: the disk took {written} bytes of {size_bytes}; it may be full"
            )

    def begin(self, directory: str, base_offset: int) -> Segment:
        """A new segment with an empty file; `StorageFailed` if the disk refuses."""
        segment = Segment(directory, base_offset)
        try:
            file = self._storage.disk.open(segment.path, create=True)
            if file.size():
                file.truncate(0)
        except OSError as error:
            raise StorageFailed(f"{self._name}: no new segment: {error.strerror or error}") from error
        self._storage.files.keep(segment.path, file)
        return segment

    def _cut_back(self, segment: Segment, file: File) -> None:
        """Remove what a failed write may have left."""
        try:
            file.truncate(segment.size_bytes)
        except OSError as error:
            self.refusal = (
                f"{self._name}: a failed write could not be undone ({error.strerror or error}); "
                "no writes until the node is started again"
            )
