"""Writing one compacted segment, and what it replaces.

What a reader could get wrong
    The file is written beside those it is made from. `Maintenance.install` gives it to readers while it still has its temporary
    name, so that no reader ever opens a name and finds a file other than the one its positions are of; `Replacement.run`
    gives it its name afterwards. A crash in between brings back what was replaced, which holds all that it holds.
    Index entries stay in memory until the file is in place.
"""

import errno
from typing import Final

from ropewalk.base.ports import File
from ropewalk.log.segment import Segment, path_of
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage
from ropewalk.log.swap import CLEANED_SUFFIX, commit
from ropewalk.records.batch import BatchHeader, decode_header
from ropewalk.records.sieve import LAST_OFFSET_DELTA_MAX, placeholder

_BUFFER_BYTES: Final = 1 << 18


class Replacement:
    """A compacted segment, durable under a temporary name, and the segments it is made from, with their files."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        segment: Segment,
        file: File,
        sources: list[tuple[Segment, File]],
    ) -> None:
        self._storage = storage
        self._directory = directory
        self.segment = segment
        self.file = file
        self.sources = sources
        self.decided_offset = 0
        """Of the transactions that ended below it no aborted record is left, here and before."""

        self.erased_offset = 0
        """Below it deletions, or ends of transactions, are left out that nothing later makes superfluous; 0: none is."""

        self.snapshot_offsets: list[int] = []
        """After `run`: the snapshots that are left."""

    def run(self) -> None:
        """Give the file its name and remove what it replaces. Blocks; may be run again if the disk refused."""
        self.snapshot_offsets = commit(
            self._storage.disk,
            self._directory,
            base_offset=self.segment.base_offset,
            end_offset=self.segment.end_offset,
        )

    def discard(self) -> None:
        """It was not installed: remove the file. Blocks."""
        self._storage.disk.remove(path_of(self._directory, self.segment.base_offset, CLEANED_SUFFIX))


class Rewrite:
    """A compacted segment that is being written. Batches come in the order of their offsets. Everything blocks."""

    def __init__(self, storage: Storage, directory: str, first: Segment, settings: LogSettings) -> None:
        self._storage = storage
        self._directory = directory
        self._path = path_of(directory, first.base_offset, CLEANED_SUFFIX)
        self._interval_bytes = settings.index_interval_bytes
        self._buffer = bytearray()
        self._gap: tuple[int, int, int] | None = None
        """Base offset, end offset and leader epoch of the batches dropped since the last one written."""

        self._has_changes = False
        self.is_without_records = True
        self.segment = Segment(directory, first.base_offset)
        self.sources: list[tuple[Segment, File]] = []
        storage.disk.remove(self._path)
        self._file = storage.disk.open(self._path, create=True)

    @property
    def size_bytes(self) -> int:
        return self.segment.size_bytes

    @property
    def is_worthwhile(self) -> bool:
        """Whether the file differs from what it was made from."""
        return self._has_changes or len(self.sources) > 1

    def copy(self, header: BatchHeader, batch: memoryview) -> None:
        """The batch stays as it is."""
        self._fill_gap()
        self._write(header, batch)

    def replace(self, batch: bytearray) -> None:
        """This is left of the batch."""
        self._has_changes = True
        self._fill_gap()
        self._write(decode_header(batch), batch)

    def drop(self, header: BatchHeader) -> None:
        """Nothing is left of the batch."""
        self._has_changes = True
        self.pass_over(header)

    def pass_over(self, header: BatchHeader) -> None:
        """Here are offsets without records."""
        gap = self._gap
        if gap is not None:
            base_offset, _, leader_epoch = gap
            if (
                leader_epoch == header.leader_epoch
                and header.end_offset - base_offset - 1 <= LAST_OFFSET_DELTA_MAX
            ):
                self._has_changes = True
                self._gap = base_offset, header.end_offset, leader_epoch
                return
            self._fill_gap()
        self._gap = header.base_offset, header.end_offset, header.leader_epoch

    def end_source(self, segment: Segment, file: File) -> None:
        """All batches of the segment have been given."""
        if self.segment.opened_at_ms is None:
            self.segment.opened_at_ms = segment.opened_at_ms
        self.sources.append((segment, file))

    def finish(self) -> Replacement:
        """The file, durable."""
        self._fill_gap()
        self._flush()
        self._file.sync()
        segment = self.segment
        assert segment.end_offset == self.sources[-1][0].end_offset, f"{self._path} lacks offsets"
        segment.trust.withdraw(segment.size_bytes)  # its pages may have left the cache while it was written
        return Replacement(self._storage, self._directory, segment, self._file, self.sources)

    def discard(self) -> None:
        self._storage.disk.remove(self._path)

    def _fill_gap(self) -> None:
        if self._gap is not None:
            base_offset, end_offset, leader_epoch = self._gap
            self._gap = None
            batch = placeholder(base_offset=base_offset, end_offset=end_offset, leader_epoch=leader_epoch)
            self._write(decode_header(batch), batch)

    def _write(self, header: BatchHeader, batch: memoryview | bytearray) -> None:
        assert header.base_offset == self.segment.end_offset, f"{self._path}: offsets have a gap"
        self._buffer += batch
        self.segment.note(header.base_offset, header.end_offset, header, self._interval_bytes)
        if header.record_count:
            self.is_without_records = False
        if len(self._buffer) >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        written_bytes = self._file.append(self._buffer)
        if written_bytes != len(self._buffer):
            raise OSError(errno.ENOSPC, "the disk took a part of a compacted segment only", self._path)
        self._buffer = bytearray()
