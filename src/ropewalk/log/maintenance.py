"""What is done to a log beside those who write and read it: snapshots, the scrub, compaction.

All of it is taken here on the event loop, run in the disk pool, and handed back here: the log has one owner.

What a reader could get wrong
    The three know of each other. A snapshot is not taken while a compacted segment is on its way: what it removed is still in
    the files. After a pass another snapshot is due, even at the same offset. Where a compacted segment takes the place
    of one that is being scrubbed, the scrub of it begins again.
    Nothing of this is remembered over a cut: `Log.maintenance` is another object then.
"""

from typing import Protocol

from ropewalk.base.ids import Offset
from ropewalk.base.limits import ABORTED_CHUNK_COUNT, COMPACTION_KEYS_MAX
from ropewalk.log.cleaning import Cleaning
from ropewalk.log.compaction import Compaction
from ropewalk.log.contents import Contents
from ropewalk.log.erasures import Erasures
from ropewalk.log.rewrite import Replacement
from ropewalk.log.scrub import Scrub, ScrubCursor
from ropewalk.log.segments import Segments
from ropewalk.log.settings import LogSettings
from ropewalk.log.snapshot import ClosedSegment, Snapshot, SnapshotSchedule, SnapshotWrite, Tail
from ropewalk.log.storage import Storage
from ropewalk.log.writer import Writer


class Maintained(Protocol):
    """The log, as far as it is known here."""

    @property
    def directory(self) -> str: ...

    @property
    def settings(self) -> LogSettings: ...

    @property
    def durable_offset(self) -> Offset: ...

    @property
    def end_offset(self) -> Offset: ...

    @property
    def is_forgotten(self) -> bool: ...

    @property
    def erasures(self) -> Erasures: ...


class Maintenance:
    __slots__ = (
        "_cleaning",
        "_contents",
        "_log",
        "_scrub_cursor",
        "_segments",
        "_snapshots",
        "_storage",
        "_writer",
    )

    def __init__(
        self,
        log: Maintained,
        storage: Storage,
        segments: Segments,
        contents: Contents,
        snapshots: SnapshotSchedule,
        writer: Writer,
    ) -> None:
        self._log = log
        self._storage = storage
        self._segments = segments
        self._contents = contents
        self._snapshots = snapshots
        self._writer = writer
        self._scrub_cursor = ScrubCursor()
        self._cleaning = Cleaning(storage, segments, contents, snapshots)

    def take_snapshot(
        self, now_ms: int, *, force: bool = False, before_deleting: bool = False
    ) -> SnapshotWrite | None:
        """A snapshot to be written in the disk pool, if one is due; then `on_snapshot`.

        `before_deleting`: what it tells of is about to be deleted, and it may use the reserve of a full disk.
        """
        log, contents, active = self._log, self._contents, self._segments.active
        aborted = contents.producers.transactions.aborted
        if aborted.is_floor_moving:
            return None
        if force or aborted.recent_count >= 2 * ABORTED_CHUNK_COUNT:
            if self._snapshots.has(log.end_offset):
                return None
        elif not self._snapshots.is_due(log.end_offset, log.settings.snapshot_interval_bytes):
            return None
        contents.producers.expire(now_ms=now_ms, expiry_ms=log.settings.producer_expiry_ms)
        chunks = aborted.take_chunks()
        snapshot = Snapshot(
            log.end_offset,
            contents.epochs.entries(),
            contents.producers.save(),
            [ClosedSegment(s.base_offset, s.size_bytes, s.max_timestamp) for s in self._segments.closed],
            Tail(active.base_offset, active.size_bytes, active.max_timestamp, active.opened_at_ms),
            self._cleaning.compacted_offset,
            contents.producers.transactions.save(),
            aborted.save(chunks),
            contents.places.save(),
        )
        obsolete_offsets = self._snapshots.on_taken(log.end_offset)
        disk = self._storage.disk_to_delete if before_deleting else self._storage.disk
        return SnapshotWrite(disk, log.directory, snapshot, obsolete_offsets, chunks)

    def on_snapshot(self, written: SnapshotWrite) -> None:
        self._snapshots.on_written(written)
        self._contents.producers.transactions.aborted.on_written(written.chunks)

    def take_scrub(self, bytes_max: int) -> Scrub | None:
        """The next stretch of closed segments to verify in the disk pool; None when all have been."""
        for segment in self._segments.closed:
            if self._scrub_cursor.is_before_end_of(segment):
                return Scrub(self._storage, segment, self._contents.epochs, self._scrub_cursor, bytes_max)
        self._scrub_cursor = ScrubCursor()
        return None

    def on_scrubbed(self, scrub: Scrub) -> None:
        if scrub.segment not in self._segments:
            return  # the next step begins with whatever is in its place
        self._scrub_cursor = scrub.cursor
        for damaged in scrub.damaged:
            self._contents.damaged.note(damaged)
        scrub.note_verified()

    def take_compaction(
        self, *, limit_offset: Offset, now_ms: int, keys_max: int = COMPACTION_KEYS_MAX
    ) -> Compaction | None:
        """A pass of compaction below `limit_offset`, if one is due. One at a time; `Compaction` says how to go on."""
        log = self._log
        if not log.settings.compacts or self._writer.refusal:
            return None
        return self._cleaning.take(
            log.directory,
            log.settings,
            limit_offset=min(limit_offset, log.durable_offset),
            now_ms=now_ms,
            keys_max=keys_max,
        )

    def install(self, replacement: Replacement) -> bool:
        """Let readers have a compacted segment; then `Replacement.run`, then `on_installed`.

        False if the log has changed under it, or was found damaged there: then it is of no use, nor is the pass.
        Whoever reads one of the segments it replaces goes on reading.
        """
        if self._writer.refusal or not self._cleaning.install(replacement):
            return False
        if replacement.erased_offset:
            self._log.erasures.on_removed(replacement.erased_offset)
        segment = replacement.segment
        if segment.base_offset <= self._scrub_cursor.base_offset < segment.end_offset:
            self._scrub_cursor = ScrubCursor(segment.base_offset, 0, segment.base_offset)
        return True

    def on_installed(self, replacement: Replacement) -> None:
        """The compacted segment's file has its name."""
        if not self._log.is_forgotten:
            self._cleaning.on_installed(replacement)

    def on_compacted(self, compaction: Compaction) -> None:
        """The pass is over."""
        self._cleaning.on_over(compaction)
