"""What all logs of a node share: the disk, what is kept back of it, the open files and the loaded indexes."""

from ropewalk.base.limits import INDEX_CACHE_BYTES_MAX, OPEN_FILES_MAX
from ropewalk.base.ports import Disk, File
from ropewalk.base.reserve import NoReserve, Purpose, Reserve
from ropewalk.log.descriptors import Descriptors
from ropewalk.log.index import Columns, IndexCache, SegmentIndex, encode_chunk
from ropewalk.log.segment import Segment


class Storage:
    __slots__ = ("disk", "disk_to_delete", "disk_to_go_on", "files", "indexes", "reserve")

    def __init__(
        self,
        disk: Disk,
        *,
        reserve: Reserve | None = None,
        files_max: int = OPEN_FILES_MAX,
        index_bytes_max: int = INDEX_CACHE_BYTES_MAX,
    ) -> None:
        """Without a `reserve` nothing is kept back."""
        self.disk = disk
        self.reserve = reserve or NoReserve(disk)
        self.disk_to_delete = self.reserve.disk_for(Purpose.DELETING)
        self.disk_to_go_on = self.reserve.disk_for(Purpose.GOING_ON)
        self.files = Descriptors(disk, files_max)
        self.indexes = IndexCache(index_bytes_max)

    def borrow(self, path: str) -> File:
        """A file for a thread of the disk pool: the open one, or one of its own."""
        return self.files.peek(path) or self.disk.open(path)

    def borrow_segment(self, segment: Segment) -> File:
        """As `borrow`, for a segment that compaction may replace at any moment.

        A segment is retired before its path changes hands, so whoever opened what lies there now finds out.
        """
        if segment.retired_file is None:
            try:
                file = self.borrow(segment.path)
            except FileNotFoundError:
                if segment.retired_file is None:
                    raise
            else:
                return segment.retired_file or file
        return segment.retired_file

    def peek_segment(self, segment: Segment) -> File | None:
        """The segment's file if it is open; for the event loop."""
        return segment.retired_file or self.files.peek(segment.path)

    def borrow_index(self, segment: Segment) -> File | None:
        """As `borrow_segment`; an index may be missing, and a retired segment has none."""
        if segment.retired_file is not None:
            return None
        try:
            return self.borrow(segment.index.path)
        except FileNotFoundError:
            return None

    def flush_index(self, index: SegmentIndex) -> None:
        """Move pending entries to the page cache. An index can always be rebuilt, so a failure is no matter."""
        if not len(index.pending):
            return
        try:
            file = self.files.get(index.path, create=True)
        except OSError:
            return
        index.flush(file, self.indexes)

    def rewrite_index(self, index: SegmentIndex, columns: Columns) -> None:
        """Replace the file of a closed segment's index that turned out incomplete or wrong."""
        chunk = encode_chunk(columns, index.base_offset)
        self.files.forget(index.path)
        index.flushed_bytes = 0
        try:
            self.disk.remove(index.path)
            if self.disk.open(index.path, create=True).append(chunk) == len(chunk):
                index.flushed_bytes = len(chunk)
        except OSError:
            return  # it is found wrong again when it is needed next

    def let_go(self, segment: Segment) -> None:
        """Drop what is open or loaded of a segment that is about to be removed."""
        self.files.forget(segment.path)
        self.files.forget(segment.index.path)
        self.indexes.drop(segment.index.path)


class Removal:
    """Files of segments that left the log, to be removed in the disk pool."""

    __slots__ = ("_disk", "_paths")

    def __init__(self, disk: Disk, paths: list[str]) -> None:
        self._disk = disk
        self._paths = paths

    def run(self) -> None:
        """What is left behind by a crash is removed when the log is opened next."""
        for path in self._paths:
            self._disk.remove(path)
