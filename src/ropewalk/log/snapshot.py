"""What is derived from a log up to some offset, saved so that not all of it need be read again.

A snapshot holds the leader epochs, the producers with their transactions, the places of owners and the largest timestamps of the segments, as they
were when the log ended at its offset. Recovery takes the newest one at or below the recovery point and replays the batch
headers after it.

What a reader could get wrong
    A snapshot above the recovery point may speak of batches that a power cut removed. Recovery never starts from
    such a one, and removes it, durably, before the log is written to again.
    A snapshot at the end of a cleanly closed log spares the scan altogether: its `tail` says how long the
    last segment must be.
"""

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

import msgspec
from crc32c import crc32c
from msgspec import Struct

from ropewalk.base.limits import SNAPSHOTS_KEPT
from ropewalk.base.ports import Disk, read_whole, write_all_atomically, write_atomically
from ropewalk.log.aborted import ChunkWrite, SavedAborted
from ropewalk.log.places import SavedOwner
from ropewalk.log.producers import SavedProducer
from ropewalk.log.segment import SNAPSHOT_SUFFIX, path_of
from ropewalk.log.transactions import SavedTransactions

_HEADER: Final = Layout("<4sI")
_MAGIC: Final = b"RWS1"


class ClosedSegment(Struct, frozen=True, gc=False, array_like=True):
    base_offset: int
    size_bytes: int
    max_timestamp: int


class Tail(Struct, frozen=True, gc=False, array_like=True):
    """The last segment, as it was."""

    base_offset: int
    size_bytes: int
    max_timestamp: int
    opened_at_ms: int | None


class Snapshot(Struct, frozen=True):
    end_offset: int
    epochs: list[tuple[int, int]]
    producers: list[SavedProducer]
    closed: list[ClosedSegment]
    tail: Tail
    compacted_offset: int = 0
    """Below it the log was compacted at least once."""

    transactions: SavedTransactions = SavedTransactions()
    aborted: SavedAborted = SavedAborted()
    places: list[SavedOwner] = []


class SnapshotWrite:
    """A snapshot on its way to the disk: taken on the event loop, written in the disk pool."""

    __slots__ = ("_directory", "_disk", "chunks", "data", "end_offset", "obsolete_offsets")

    def __init__(
        self,
        disk: Disk,
        directory: str,
        snapshot: Snapshot,
        obsolete_offsets: list[int],
        chunks: Sequence[ChunkWrite] = (),
    ) -> None:
        """`chunks`: what the snapshot counts on besides itself."""
        payload = msgspec.msgpack.encode(snapshot)
        self._disk = disk
        self.data = _HEADER.pack(_MAGIC, crc32c(payload)) + payload
        self._directory = directory
        self.end_offset = snapshot.end_offset
        self.obsolete_offsets = obsolete_offsets
        self.chunks = chunks

    @property
    def path(self) -> str:
        return path_of(self._directory, self.end_offset, SNAPSHOT_SUFFIX)

    def run(self) -> None:
        """Write it, then remove those it makes superfluous."""
        self.write_chunks()
        write_atomically(self._disk, self.path, self.data)
        self.remove_obsolete()

    def write_chunks(self) -> None:
        for chunk in self.chunks:
            chunk.run(self._disk, self._directory)

    def remove_obsolete(self) -> None:
        for offset in self.obsolete_offsets:
            self._disk.remove(path_of(self._directory, offset, SNAPSHOT_SUFFIX))


def write_snapshots(disk: Disk, writes: Sequence[SnapshotWrite]) -> None:
    """Run them all, with few syncs. Blocks."""
    for write in writes:
        write.write_chunks()
    write_all_atomically(disk, [(write.path, write.data) for write in writes])
    for write in writes:
        write.remove_obsolete()


class SnapshotSchedule:
    """Which snapshots a log has, and how much was written since the last."""

    __slots__ = ("_is_outdated", "offsets", "unsaved_bytes")

    def __init__(self, offsets: list[int], *, unsaved_bytes: int) -> None:
        self.offsets = offsets
        self.unsaved_bytes = unsaved_bytes
        self._is_outdated = False

    def is_due(self, end_offset: int, interval_bytes: int) -> bool:
        return not self.has(end_offset) and (self._is_outdated or self.unsaved_bytes >= interval_bytes)

    def has(self, end_offset: int) -> bool:
        return bool(self.offsets) and self.offsets[-1] == end_offset and not self._is_outdated

    def tells_of(self, base_offset: int, *, durable_offset: int) -> bool:
        """Whether a restart can begin with the latest one, where the log's segments begin at `base_offset`: its last one is among them,
        and it speaks of nothing that a power cut could remove."""
        return (
            bool(self.offsets) and not self._is_outdated and base_offset < self.offsets[-1] <= durable_offset
        )

    def on_compacted(self) -> None:
        """The latest one speaks of segments as they were before; another is due, even at the same offset."""
        self._is_outdated = True

    def on_rolled(self, interval_bytes: int) -> None:
        """The latest one tells of another last segment, which may be removed before anything is appended; another is due."""
        self.unsaved_bytes = interval_bytes
        self._is_outdated = True

    def on_removed(self, offsets_left: list[int]) -> None:
        self.offsets = [offset for offset in self.offsets if offset in offsets_left]

    def on_taken(self, end_offset: int) -> list[int]:
        """One is on its way; answers those that are superfluous once it is written."""
        self.unsaved_bytes = 0
        self._is_outdated = False
        others = [offset for offset in self.offsets if offset != end_offset]
        return others[: max(0, len(others) + 1 - SNAPSHOTS_KEPT)]

    def on_written(self, written: SnapshotWrite) -> None:
        gone = (*written.obsolete_offsets, written.end_offset)
        self.offsets = [offset for offset in self.offsets if offset not in gone]
        self.offsets.append(written.end_offset)


def read_snapshot(disk: Disk, directory: str, end_offset: int) -> Snapshot | None:
    """None if the file is missing or damaged; it is only a shortcut."""
    try:
        data = read_whole(disk, path_of(directory, end_offset, SNAPSHOT_SUFFIX))
    except OSError:
        return None
    if len(data) < _HEADER.size:
        return None
    magic, guard = _HEADER.unpack_from(data)
    payload = memoryview(data)[_HEADER.size :]
    if magic != _MAGIC or crc32c(payload) != guard:
        return None
    try:
        snapshot = msgspec.msgpack.decode(payload, type=Snapshot)
    except msgspec.DecodeError:
        return None
    return snapshot if snapshot.end_offset == end_offset else None
