"""The files of one partition's directory, as recovery finds, removes and makes them. Everything blocks.

Removed names are gone for good only after `sync_names`.
"""

from typing import Final

from ropewalk.base.ports import Disk, File
from ropewalk.log.aborted import ABORTED_SUFFIX, AbortedTransactions
from ropewalk.log.index import IndexCache, decode_chunks
from ropewalk.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    Segment,
    offsets_of,
    path_of,
)
from ropewalk.log.snapshot import Snapshot, read_snapshot
from ropewalk.log.swap import settle

_REWRITE_BYTES: Final = 1 << 20


class PartitionFiles:
    def __init__(self, disk: Disk, directory: str, reserved_disk: Disk | None = None) -> None:
        """`reserved_disk`: the same disk, for what a log cannot be opened without."""
        self.directory = directory
        self._disk = disk
        self._reserved_disk = reserved_disk or disk
        self._names_changed = False
        settle(disk, directory)
        names = disk.list(directory)
        self.base_offsets = offsets_of(names, LOG_SUFFIX)
        self.snapshot_offsets = offsets_of(names, SNAPSHOT_SUFFIX)
        self._chunk_offsets = offsets_of(names, ABORTED_SUFFIX)
        self._index_offsets = set(offsets_of(names, INDEX_SUFFIX))
        for name in names:
            if name.endswith(".tmp"):
                self._remove(f"{directory}/{name}")

    def open(self, segment: Segment) -> File:
        return self._disk.open(segment.path)

    def drop_cached(self, file: File) -> None:
        """Have what is read of a file be what the disk has: a former process may have ended of a sync that failed, and the cache
        shows what the disk never got. Only what the kernel calls clean can be dropped, so it is synced first."""
        if not self._disk.can_sync_everything:  # where everything can be, everything was
            file.hear_former_errors()
        file.drop_cached()

    def rewrite(self, segment: Segment, start_position: int) -> None:
        """Make sure that the next sync takes a segment's bytes from there on to disk. See `File.rewrite`."""
        file = self._reserved_disk.open(segment.path)
        file.hear_former_errors()
        for position in range(start_position, segment.size_bytes, _REWRITE_BYTES):
            size = min(_REWRITE_BYTES, segment.size_bytes - position)
            file.rewrite(position, file.read(position, size))

    def size(self, base_offset: int) -> int:
        return self._disk.open(path_of(self.directory, base_offset, LOG_SUFFIX)).size()

    def index_size(self, base_offset: int) -> int:
        if base_offset not in self._index_offsets:
            return 0
        return self._disk.open(path_of(self.directory, base_offset, INDEX_SUFFIX)).size()

    def snapshot(self, end_offset: int) -> Snapshot | None:
        return read_snapshot(self._disk, self.directory, end_offset)

    def create(self, base_offset: int) -> Segment:
        """An empty segment, whatever stood under its name."""
        segment = Segment(self.directory, base_offset)
        file = self._reserved_disk.open(segment.path, create=True)
        if file.size():
            file.truncate(0)
        return segment

    def remove_segment(self, base_offset: int) -> None:
        self._remove(path_of(self.directory, base_offset, LOG_SUFFIX))
        self._remove(path_of(self.directory, base_offset, INDEX_SUFFIX))

    def remove_snapshots_above(self, offset: int) -> None:
        for end_offset in self.snapshot_offsets:
            if end_offset > offset:
                self._remove(path_of(self.directory, end_offset, SNAPSHOT_SUFFIX))

    def remove_stray_indexes(self) -> None:
        for base_offset in sorted(self._index_offsets.difference(self.base_offsets)):
            self._remove(path_of(self.directory, base_offset, INDEX_SUFFIX))

    def has_chunks(self, aborted: AbortedTransactions) -> bool:
        """Whether the files that it counts on are as they were written."""
        return aborted.is_intact(self._disk, self.directory)

    def remove_stray_chunks(self, aborted: AbortedTransactions) -> None:
        """Remove what no snapshot that is believed counts on: it may tell of another history."""
        in_use = aborted.chunk_offsets
        for name_offset in self._chunk_offsets:
            if name_offset not in in_use:
                self._remove(path_of(self.directory, name_offset, ABORTED_SUFFIX))

    def keep_index_below(self, segment: Segment) -> None:
        """Drop the part of an index that lies behind the segment's present size, durably.

        It is about to be scanned, and the index may speak of another history.
        """
        if segment.base_offset not in self._index_offsets:
            segment.index.flushed_bytes = 0
            return
        if segment.size_bytes == 0:
            self._remove(segment.index.path)
            segment.index.flushed_bytes = 0
            return
        file = self._disk.open(segment.index.path)
        size_bytes = file.size()
        data = file.read(0, size_bytes)
        columns, keep_bytes = decode_chunks(data, segment.base_offset)
        while len(columns) and columns.positions[-1] >= segment.size_bytes:
            # Without its last byte the last chunk is not whole.
            columns, keep_bytes = decode_chunks(data[: keep_bytes - 1], segment.base_offset)
        if keep_bytes != size_bytes:
            file.hear_former_errors()
            file.truncate(keep_bytes)
            file.sync()
        segment.index.flushed_bytes = keep_bytes

    def flush_index(self, segment: Segment) -> None:
        """Write the entries of a closed segment, so that they need not stay in memory. An index may fail to be written."""
        if not len(segment.index.pending):
            return
        try:
            file = self._disk.open(segment.index.path, create=True)
        except OSError:
            return
        segment.index.flush(file, IndexCache(0))

    def sync_names(self) -> None:
        if self._names_changed:
            self._disk.sync_directory(self.directory)

    def _remove(self, path: str) -> None:
        self._disk.remove(path)
        self._names_changed = True
