"""How batches get into a log's files, whole or not at all, and what must be synced for them to stay there.

Invariants
    What a failed write left is cut off before the next write; if that fails, nothing more is written until the log
    is opened again.
    A file with unsynced bytes stays open: the kernel reports a failed write-back to those who had it open. Where too many
    would, `Descriptors` knows which were closed, and `SyncTargets.has_reopened` says so.
    A name is durable before anything behind it counts as durable: `sync_targets` lists the directory until then.
"""

from typing import Final, NoReturn

from msgspec import Struct

from ropewalk.base.errors import BatchExceedsSegment, DiskFull, StorageFailed
from ropewalk.base.ids import Offset
from ropewalk.base.ports import File
from ropewalk.base.reserve import is_no_room
from ropewalk.log.index import CHUNK_ENTRIES, RELATIVE_OFFSET_MAX
from ropewalk.log.segment import Segment
from ropewalk.log.segments import Segments
from ropewalk.log.settings import LogSettings
from ropewalk.log.snapshot import SnapshotSchedule
from ropewalk.log.storage import Storage
from ropewalk.records.batch import BatchHeader

_SEGMENT_BYTES_LIMIT: Final = 2**31 - 1


class SyncTargets(Struct, frozen=True):
    """What must reach the disk so that the log is durable up to `end_offset`."""

    end_offset: Offset
    files: tuple[File, ...]
    directories: tuple[str, ...]
    has_reopened: bool = False
    """Whether one of the files was closed before it was synced: where everything can be synced at once, only that tells."""


class Writer:
    __slots__ = (
        "_cuts_listed",
        "_cuts_unsynced",
        "_directory",
        "_name",
        "_names_unsynced",
        "_segments",
        "_snapshots",
        "_storage",
        "refusal",
    )

    def __init__(
        self,
        storage: Storage,
        directory: str,
        name: str,
        segments: Segments,
        snapshots: SnapshotSchedule,
        *,
        durable_offset: Offset,
    ) -> None:
        self._storage = storage
        self._directory = directory
        self._name = name
        self._segments = segments
        self._snapshots = snapshots
        self._names_unsynced = [
            segment.base_offset
            for segment in segments.all
            if segment.end_offset > durable_offset or segment.base_offset >= durable_offset
        ]
        self._cuts_unsynced: list[str] = []
        """Files that a failed write was cut back from. All that counts of them may be durable, and the cut not yet: after a power
        cut the rest of that write would be back at the end of a segment that nobody recovers any more."""
        self._cuts_listed = 0
        """How many of these the last targets of a sync had."""
        self.refusal = ""
        """Why nothing may be written; empty while something may."""

    def segment_for(
        self,
        size_bytes: int,
        end_offset: int,
        now_ms: int,
        settings: LogSettings,
        *,
        may_exceed: bool = False,
    ) -> Segment:
        """The active segment, or a new one if the active may not take `size_bytes` more.

        `DiskFull` while only the reserve is left: what is freed of it is not for records.
        """
        if self._storage.reserve.is_full:
            raise DiskFull(f"{self._name}: the disk is full; nothing is written until there is room")
        active = self._segments.active
        bytes_max = min(settings.segment_bytes, _SEGMENT_BYTES_LIMIT)
        if active.opened_at_ms is None:
            if size_bytes > bytes_max and not may_exceed:
                self._refuse_size(size_bytes, settings)
            active.opened_at_ms = now_ms
            return active
        if (
            active.size_bytes + size_bytes > bytes_max
            or now_ms - active.opened_at_ms >= settings.segment_ms
            or end_offset - active.base_offset > RELATIVE_OFFSET_MAX
        ):
            if size_bytes > bytes_max and not may_exceed:
                self._refuse_size(size_bytes, settings)
            self.roll(settings)
            active = self._segments.active
            active.opened_at_ms = now_ms
        return active

    def write(
        self,
        segment: Segment,
        batch: memoryview,
        header: BatchHeader,
        base_offset: int,
        end_offset: int,
        settings: LogSettings,
    ) -> None:
        """Put a batch at the end of `segment`, which is active; `StorageFailed` if the disk does not take it.

        The offsets are those the batch has here: `header` may be as its producer wrote it.
        """
        files = self._storage.files
        try:
            file = files.pin(segment.path)
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
            if is_no_room(error):
                self._storage.reserve.on_no_room()
            raise StorageFailed(f"{self._name}: {error.strerror or error}") from error
        if written != header.size_bytes:
            self._cut_back(segment, file)
            self._storage.reserve.on_no_room()
            raise StorageFailed(
                f"{self._name}: the disk took {written} bytes of {header.size_bytes}; it may be full"
            )
        self._segments.tail.add(base_offset, segment.size_bytes)
        segment.note(base_offset, end_offset, header, settings.index_interval_bytes)
        self._snapshots.unsaved_bytes += header.size_bytes
        if len(segment.index.pending) >= CHUNK_ENTRIES:
            self._storage.flush_index(segment.index)

    def roll(self, settings: LogSettings) -> None:
        """Close the active segment and begin the next. If the disk refuses, nothing has changed.

        An empty segment is as good as a new one, which would have the same name.
        """
        active = self._segments.active
        if active.base_offset == active.end_offset:
            return
        segment = self._begin(active.end_offset)
        self._storage.flush_index(active.index)
        self._names_unsynced.append(segment.base_offset)
        self._segments.begin(segment)
        self._snapshots.on_rolled(settings.snapshot_interval_bytes)

    def roll_if_due(self, settings: LogSettings, now_ms: int) -> None:
        """Roll if the time of the active segment is over, although nothing is appended."""
        active = self._segments.active
        if not active.size_bytes or active.opened_at_ms is None or self.refusal:
            return
        if now_ms - active.opened_at_ms >= settings.segment_ms:
            self.roll(settings)

    def sync_targets(self, *, durable_offset: Offset, end_offset: Offset) -> SyncTargets:
        """All that was written from `durable_offset` on, in a log that ends at `end_offset`."""
        files = []
        has_reopened = False
        for segment in self._segments.above(durable_offset):
            segment.is_settled = True
            has_reopened |= self._storage.files.was_given_up(segment.path)
            files.append(self._storage.files.get(segment.path))
        if self._cuts_unsynced:
            files += self._files_cut(durable_offset)
        self._cuts_listed = len(self._cuts_unsynced)
        has_new_name = any(base_offset < end_offset for base_offset in self._names_unsynced)
        directories = (self._directory,) if has_new_name else ()
        return SyncTargets(end_offset, tuple(files), directories, has_reopened)

    def _files_cut(self, durable_offset: Offset) -> list[File]:
        """As far as their segments are there still, and not synced anyway."""
        synced = {segment.path for segment in self._segments.above(durable_offset)}
        wanted = set(self._cuts_unsynced) - synced
        return [
            self._storage.files.get(segment.path) for segment in self._segments.all if segment.path in wanted
        ]

    def on_synced(self, *, durable_offset: Offset, end_offset: Offset) -> None:
        """What was durable up to `durable_offset` is so up to `end_offset`."""
        for segment in self._segments.above(durable_offset):
            if segment.end_offset <= end_offset:
                self._storage.files.unpin(segment.path)
        del self._cuts_unsynced[: self._cuts_listed]
        self._cuts_listed = 0
        if self._names_unsynced:
            # A segment that begins at `end_offset` may have been made after the targets were listed.
            self._names_unsynced = [base for base in self._names_unsynced if base >= end_offset]

    def _begin(self, base_offset: int) -> Segment:
        """A new segment with an empty file; `StorageFailed` if the disk refuses."""
        segment = Segment(self._directory, base_offset)
        try:
            # Retention cannot remove what is not closed, and another is needed then.
            file = self._storage.disk_to_go_on.open(segment.path, create=True)
            if file.size():
                file.truncate(0)
            file = self._storage.disk.open(segment.path)
        except OSError as error:
            raise StorageFailed(f"{self._name}: no new segment: {error.strerror or error}") from error
        self._storage.files.keep(segment.path, file)
        return segment

    def _refuse_size(self, size_bytes: int, settings: LogSettings) -> NoReturn:
        raise BatchExceedsSegment(
            f"{self._name}: a batch of {size_bytes} bytes exceeds a segment of {settings.segment_bytes}"
        )

    def _cut_back(self, segment: Segment, file: File) -> None:
        """Remove what a failed write may have left."""
        self._cuts_unsynced.append(segment.path)
        try:
            file.truncate(segment.size_bytes)
        except OSError as error:
            self.refusal = (
                f"{self._name}: a failed write could not be undone ({error.strerror or error}); "
                "no writes until the node is started again"
            )
