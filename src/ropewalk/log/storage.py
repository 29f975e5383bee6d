"""What all logs of a node share: the disk, the open files and the loaded indexes."""

from ropewalk.base.limits import INDEX_CACHE_BYTES_MAX, OPEN_FILES_MAX
from ropewalk.base.ports import Disk, File
from ropewalk.log.descriptors import Descriptors
from ropewalk.log.index import IndexCache


class Storage:
    __slots__ = ("disk", "files", "indexes")

    def __init__(
        self, disk: Disk, *, files_max: int = OPEN_FILES_MAX, index_bytes_max: int = INDEX_CACHE_BYTES_MAX
    ) -> None:
        self.disk = disk
        self.files = Descriptors(disk, files_max)
        self.indexes = IndexCache(index_bytes_max)

    def borrow(self, path: str) -> File:
        """A file for a thread of the disk pool: the open one, or one of its own."""
        return self.files.peek(path) or self.disk.open(path)

    def borrow_index(self, path: str) -> File | None:
        """As `borrow`; an index may be missing."""
        try:
            return self.borrow(path)
        except FileNotFoundError:
            return None
