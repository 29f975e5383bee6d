"""One partition on disk.

Everything here is called on the event loop and answers at once, except `open`, `truncate_to`, `boundary_at` and the two look-ups by
time, which block and belong in the disk pool. Work for the pool that changes with the log is taken on the
loop as an object with a `run` method, run in the pool, and handed back to an `on_…` method on the loop.

Invariants
    `start_offset ≤ durable_offset ≤ end_offset` once the log is open; none of them moves back, except by
    a cut.
    A batch is in the file whole or not at all (`Writer`).
    A name is durable before anything behind it counts as durable: `sync_targets` lists the directory until then.
    Files of deleted segments go only after the log start that deleted them is durable.
"""

from typing import Final, NoReturn

from msgspec import Struct

from ropewalk.base.errors import (
    BatchExceedsSegment,
    CorruptBatch,
    FencedEpoch,
    OffsetOutOfRange,
    StorageFailed,
)
from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.base.limits import ABORTED_CHUNK_COUNT, COMPACTION_KEYS_MAX
from ropewalk.base.ports import Disk, File
from ropewalk.log.aborted import ABORTED_SUFFIX, AbortedLookup
from ropewalk.log.aborted import AbortedTransaction as AbortedTransaction
from ropewalk.log.cleaning import Cleaning
from ropewalk.log.compaction import Compaction
from ropewalk.log.contents import LEADER_EPOCH_MAX, Contents, Recovered
from ropewalk.log.damage import DamagedRange
from ropewalk.log.epochs import EpochEnd
from ropewalk.log.index import CHUNK_ENTRIES, RELATIVE_OFFSET_MAX
from ropewalk.log.producers import ActiveProducer
from ropewalk.log.reader import Reader
from ropewalk.log.recovery import open_contents
from ropewalk.log.retention import decide_retention
from ropewalk.log.rewrite import Replacement
from ropewalk.log.scrub import Scrub, ScrubCursor
from ropewalk.log.segment import SNAPSHOT_SUFFIX, TIMESTAMP_NONE, Segment, offsets_of, path_of
from ropewalk.log.segments import Segments
from ropewalk.log.settings import LogSettings
from ropewalk.log.snapshot import ClosedSegment, Snapshot, SnapshotSchedule, SnapshotWrite, Tail
from ropewalk.log.span import Span as Span
from ropewalk.log.storage import Removal, Storage
from ropewalk.log.times import TimedOffset as TimedOffset
from ropewalk.log.times import TimeSearch
from ropewalk.log.transactions import OpenTransaction
from ropewalk.log.truncation import Cut, boundary_at
from ropewalk.log.writer import Writer
from ropewalk.records.batch import CONTROL, BatchHeader, decode_header, stamp
from ropewalk.records.marker import Marker, TransactionMarker, build_marker, read_marker

_SEGMENT_BYTES_LIMIT: Final = 2**31 - 1


class Appended(Struct, frozen=True, gc=False):
    base_offset: Offset
    end_offset: Offset
    duplicate: bool
    """The batch was in the log already, at these offsets."""

    size_bytes: int = 0
    """Of what was written."""


class SyncTargets(Struct, frozen=True):
    """What must reach the disk so that the log is durable up to `end_offset`."""

    end_offset: Offset
    files: tuple[File, ...]
    directories: tuple[str, ...]


class Log:
    __slots__ = (
        "_cleaning",
        "_contents",
        "_cut_offset",
        "_is_forgotten",
        "_names_unsynced",
        "_reader",
        "_scrub_cursor",
        "_segments",
        "_snapshots",
        "_storage",
        "_writer",
        "directory",
        "durable_offset",
        "end_offset",
        "name",
        "planned_start_offset",
        "settings",
        "start_offset",
    )
    start_offset: Offset
    planned_start_offset: Offset
    durable_offset: Offset
    end_offset: Offset
    _names_unsynced: list[int]

    def __init__(
        self,
        storage: Storage,
        directory: str,
        settings: LogSettings,
        contents: Contents,
        snapshots: list[int],
    ) -> None:
        self._storage = storage
        self.directory = directory
        self.name = directory.rpartition("/")[2]
        self.settings = settings
        self._scrub_cursor = ScrubCursor()
        self._is_forgotten = False
        self._cut_offset: Offset | None = None
        self._adopt(contents, snapshots)

    @classmethod
    def open(
        cls,
        storage: Storage,
        directory: str,
        settings: LogSettings,
        *,
        recovery_point: Offset,
        start_offset: Offset,
        clean: bool,
        now_ms: int,
        leader_epoch_max: LeaderEpoch = LEADER_EPOCH_MAX,
    ) -> "Log":
        """Read and repair the partition in `directory`, which exists. Blocks. `recovered` says what was found.

        `clean` says that the node stopped in order; a log that is not as it was left then is recovered all the same.
        `leader_epoch_max` is the newest epoch that the cluster has given to the partition: no batch can be of a later
        one, however its bits have turned.
        """
        contents = open_contents(
            storage.disk,
            directory,
            settings,
            recovery_point=recovery_point,
            start_offset=start_offset,
            is_clean=clean,
            now_ms=now_ms,
            leader_epoch_max=leader_epoch_max,
        )
        return cls(storage, directory, settings, contents, _snapshots_in(storage.disk, directory))

    @property
    def recovered(self) -> Recovered:
        return self._contents.report

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def active_producers(self) -> list[ActiveProducer]:
        return self._contents.producers.active()

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def oldest_segment_timestamp(self) -> int | None:
        """The largest timestamp in the oldest segment: its age is what retention goes by. None where there is none."""
        timestamp = self._segments.all[0].max_timestamp
        return None if timestamp == TIMESTAMP_NONE else timestamp

    @property
    def leader_epoch_latest(self) -> LeaderEpoch:
        """The epoch of the last batch; -1 in an empty log."""
        return LeaderEpoch(self._contents.epochs.latest)

    @property
    def dirty(self) -> bool:
        return self.durable_offset < self.end_offset

    @property
    def recovery_point(self) -> Offset:
        """For the checkpoint: below it everything is on disk, names included, and will stay."""
        cut_offset = self._cut_offset
        return self.durable_offset if cut_offset is None else min(cut_offset, self.durable_offset)

    @property
    def damaged(self) -> tuple[DamagedRange, ...]:
        return tuple(self._contents.damaged)

    # Writing

    def append(
        self, batch: memoryview, header: BatchHeader, *, leader_epoch: LeaderEpoch, now_ms: int
    ) -> Appended:
        """Write one valid batch at the end, stamped in place with its offset and epoch.

        Refuses with `OutOfOrderSequence`, `ProducerFenced` and `InvalidTransactionState` what its producer may not send now, with
        `BatchExceedsSegment` what fits no segment, and with `StorageFailed` what the disk does not take. A refused
        batch leaves no trace. Runs to the end without suspending.
        """
        self._check_may_write(leader_epoch)
        if header.producer_id >= 0:
            before = self._contents.producers.check(header)
            if before is not None:
                return Appended(Offset(before[0]), Offset(before[1]), True)
        return self._write(batch, header, leader_epoch, now_ms, None)

    def append_marker(
        self, marker: TransactionMarker, *, leader_epoch: LeaderEpoch, now_ms: int
    ) -> Appended | None:
        """End a producer's transaction; None if that very marker was written before.

        Refuses as `Producers.check_marker` and `append` do.
        """
        self._check_may_write(leader_epoch)
        if not self._contents.producers.check_marker(marker):
            return None
        batch = memoryview(
            build_marker(
                marker.producer_id,
                marker.producer_epoch,
                marker.committed,
                marker.coordinator_epoch,
                now_ms,
            )
        )
        told = Marker(marker.committed, marker.coordinator_epoch)
        return self._write(batch, decode_header(batch), leader_epoch, now_ms, told)

    def append_as_follower(self, batch: memoryview, header: BatchHeader, *, now_ms: int) -> None:
        """Write a batch as the leader wrote it. Refuses one that does not continue this log with `CorruptBatch`.

        What the leader took when segments were larger has a segment of its own.
        """
        if self._writer.refusal:
            raise StorageFailed(self._writer.refusal)
        if header.base_offset != self.end_offset:
            raise CorruptBatch(f"{self.name}: offset {header.base_offset} does not follow {self.end_offset}")
        if header.leader_epoch < self._contents.epochs.latest:
            raise CorruptBatch(
                f"{self.name}: epoch {header.leader_epoch} does not follow {self._contents.epochs.latest}"
            )
        segment = self._segment_for(header.size_bytes, header.end_offset, now_ms, may_exceed=True)
        self._writer.write(segment, batch, header.size_bytes)
        self._note(segment, header, header.base_offset, header.end_offset, header.leader_epoch)
        if header.producer_id >= 0:
            marker = read_marker(batch[: header.size_bytes]) if header.attributes & CONTROL else None
            self._contents.producers.apply(header, header.base_offset, now_ms, marker)

    def sync_targets(self) -> SyncTargets:
        files = []
        for segment in self._segments.above(self.durable_offset):
            segment.is_settled = True
            files.append(self._storage.files.get(segment.path))
        has_new_name = any(base_offset < self.end_offset for base_offset in self._names_unsynced)
        return SyncTargets(self.end_offset, tuple(files), (self.directory,) if has_new_name else ())

    def on_synced(self, end_offset: Offset) -> None:
        """Everything that `sync_targets` listed when the log ended at `end_offset` is on disk."""
        if end_offset <= self.durable_offset:
            return
        for segment in self._segments.above(self.durable_offset):
            if segment.is_pinned and segment.end_offset <= end_offset:
                self._storage.files.unpin(segment.path)
                segment.is_pinned = False
        self.durable_offset = end_offset
        if self._names_unsynced:
            # A segment that begins at `end_offset` may have been made after the targets were listed.
            self._names_unsynced = [base for base in self._names_unsynced if base >= end_offset]

    # Reading

    def check_offset(self, offset: Offset) -> None:
        """Raise `OffsetOutOfRange` where `locate` would."""
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(
                f"{self.name}: offset {offset} is not within {self.start_offset} to {self.end_offset}"
            )

    def locate(self, offset: Offset, *, limit_offset: Offset, bytes_max: int) -> Span | None:
        """Whole batches from the one that contains `offset`, below `limit_offset`, within one segment.

        At least one batch even if it is larger than `bytes_max`; None if there is none below the limit.
        Refuses with `OffsetOutOfRange`, and with `StorageFailed` an offset that is known to be damaged.
        """
        if not self.start_offset <= offset <= self.end_offset:
            self.check_offset(offset)
        if offset >= limit_offset:
            return None
        return self._reader.locate(
            offset,
            limit_offset=limit_offset,
            bytes_max=bytes_max,
            interval_bytes=self.settings.index_interval_bytes,
        )

    def on_read(self, span: Span) -> None:
        """`span.read` has answered in the disk pool: remember what it opened, loaded and verified."""
        if not self._is_forgotten:
            self._reader.on_read(span)

    def offset_for_timestamp(self, timestamp: int, *, limit_offset: Offset) -> TimedOffset | None:
        """The first record below `limit_offset` whose timestamp is not below `timestamp`. Blocks."""
        return self._search_times(limit_offset).first_at_or_after(timestamp)

    def offset_of_max_timestamp(self, *, limit_offset: Offset) -> TimedOffset | None:
        """The first record below `limit_offset` that has the largest timestamp of all. Blocks."""
        return self._search_times(limit_offset).largest()

    def end_offset_for_epoch(self, leader_epoch: LeaderEpoch) -> EpochEnd | None:
        """The end of the largest epoch that is not above `leader_epoch`; None if there is none."""
        return self._contents.epochs.end_of(leader_epoch, log_end_offset=self.end_offset)

    def epoch_at(self, offset: Offset) -> LeaderEpoch:
        return LeaderEpoch(self._contents.epochs.at(offset))

    # Transactions

    def stable_offset(self, high_watermark: Offset) -> Offset:
        """Below it no transaction is undecided. The high watermark, unless one is."""
        stable_offset = self._contents.producers.transactions.stable_offset(high_watermark)
        return (
            high_watermark
            if stable_offset == high_watermark
            else max(self.start_offset, Offset(stable_offset))
        )

    def aborted_in(self, start_offset: Offset, end_offset: Offset) -> AbortedLookup:
        """The aborted transactions with records in that range, to be looked up: at hand, or in the disk pool.

        It tells of the records as they are found now; those that are read later must have been located by now.
        """
        return self._contents.producers.transactions.aborted.look_up(
            self._storage.disk, self.directory, start_offset=start_offset, end_offset=end_offset
        )

    def aborted_between(self, start_offset: Offset, end_offset: Offset) -> tuple[AbortedTransaction, ...]:
        """All of `aborted_in` at once. May block."""
        return self.aborted_in(start_offset, end_offset).run()

    @property
    def open_transactions(self) -> tuple[OpenTransaction, ...]:
        """In the order of their first offsets."""
        return self._contents.producers.transactions.all_open()

    def continues_transaction(self, header: BatchHeader) -> bool:
        """Whether its producer, at its epoch, has a transaction open here."""
        known = self._contents.producers.transactions.open_of(header.producer_id)
        return known is not None and known.producer_epoch == header.producer_epoch

    def repeats(self, header: BatchHeader) -> bool:
        """Whether `append` would find the batch in the log; refuses as `append` does."""
        return self._contents.producers.check(header) is not None

    def knows_producer(self, producer_id: int) -> bool:
        return self._contents.producers.knows(producer_id)

    # Deleting

    def plan_start(self, offset: Offset, *, limit_offset: Offset) -> None:
        """Plan to delete the records below `offset` (DeleteRecords); refuses with `OffsetOutOfRange` beyond the limit.

        The caller makes the planned start durable, then calls `take_removal`, which moves the start: nobody may be
        told of a start that a power cut could take back.
        """
        if not 0 <= offset <= limit_offset:
            raise OffsetOutOfRange(f"{self.name}: cannot delete up to {offset}; the limit is {limit_offset}")
        self.planned_start_offset = max(self.planned_start_offset, offset)

    def plan_retention(self, *, limit_offset: Offset, now_ms: int) -> bool:
        """Plan to delete what has expired; True if there is anything. Then as after `plan_start`."""
        decision = decide_retention(
            self._segments.all,
            self.settings,
            start_offset=self.start_offset,
            limit_offset=limit_offset,
            now_ms=now_ms,
        )
        if decision.start_offset <= self.start_offset:
            return False
        if decision.rolls:
            self._roll()
        self.plan_start(Offset(decision.start_offset), limit_offset=limit_offset)
        return True

    def take_removal(self, *, start_offset_durable: Offset) -> Removal | None:
        """Start the log where it does durably, and let go of the segments below; None if there are none."""
        self.start_offset = max(self.start_offset, start_offset_durable)
        count = 0
        for segment in self._segments.closed:
            # One whose file has yet to get its name is removed with the next.
            if segment.end_offset > start_offset_durable or segment.is_moving:
                break
            count += 1
        if not count:
            return None
        paths: list[str] = []
        for segment in self._segments.remove_first(count):
            paths += (segment.path, segment.index.path)
            self._storage.let_go(segment)
        self._contents.epochs = self._contents.epochs.from_offset(self._segments.base_offset)
        self._contents.damaged.keep_within(start_offset=self.start_offset, end_offset=self.end_offset)
        paths += self._forget_aborted_below(self.start_offset)
        return Removal(self._storage.disk, paths)

    def plan_cut(self, offset: Offset) -> None:
        """The log is about to be cut back to `offset`, a `boundary_at`: from here on it is no further recoverable than that.

        The caller makes that recovery point durable, then takes the cut: what is cut must not be missed at the next
        start. Until `on_cut` nobody else may use the log.
        """
        self._cut_offset = offset

    def plan_restart(self, offset: Offset) -> None:
        """The log is about to be thrown away, to begin again at `offset`. As `plan_cut`, and the planned start must be
        made durable, too: without it what is appended afterwards would be taken for something that does not belong here."""
        self._cut_offset = min(offset, self.start_offset)
        self.planned_start_offset = offset

    def give_up_cut(self) -> None:
        """What was planned is not to be: the checkpoints could not be written."""
        self._cut_offset = None
        self.planned_start_offset = self.start_offset

    def take_cut(self, offset: Offset, *, now_ms: int) -> Cut:
        """To cut the log back to `offset`, or to the batch that contains it; run it in the disk pool, then `on_cut`."""
        assert offset >= self.start_offset, f"{self.name}: {offset} is below the start {self.start_offset}"
        for segment in self._segments.above(offset):
            self._storage.let_go(segment)
        return self._cut(offset, is_whole=False, now_ms=now_ms)

    def take_restart(self, offset: Offset, *, now_ms: int) -> Cut:
        """To throw the whole log away and begin again at `offset`, as planned. As `take_cut`."""
        for segment in self._segments.all:
            self._storage.let_go(segment)
        return self._cut(offset, is_whole=True, now_ms=now_ms)

    def on_cut(self, cut: Cut) -> None:
        assert cut.contents is not None, "the cut was not made"
        self._cut_offset = None
        self._scrub_cursor = ScrubCursor()
        self._adopt(cut.contents, cut.snapshots_left)

    def truncate_to(self, offset: Offset, *, now_ms: int) -> None:
        """All of `take_cut` at once. Blocks."""
        if offset < self.end_offset:
            cut = self.take_cut(offset, now_ms=now_ms)
            cut.run()
            self.on_cut(cut)

    def boundary_at(self, offset: Offset) -> Offset:
        """Where the batch that contains `offset` begins. Blocks."""
        return Offset(boundary_at(self._storage.disk, self._segments.containing(offset), offset)[0])

    # Keeping house

    def roll_if_due(self, now_ms: int) -> None:
        """Close an active segment whose time is over although nothing is appended, so that retention can reach it."""
        active = self._segments.active
        if active.size_bytes and _is_over_time(active, self.settings, now_ms) and not self._writer.refusal:
            self._roll()

    def take_snapshot(self, now_ms: int, *, force: bool = False) -> SnapshotWrite | None:
        """A snapshot to be written in the disk pool, if one is due; then `on_snapshot`.

        None while a compacted segment is on its way: what it removed is still in the files.
        """
        aborted = self._contents.producers.transactions.aborted
        if aborted.is_floor_moving:
            return None
        if force or aborted.recent_count >= 2 * ABORTED_CHUNK_COUNT:
            if self._snapshots.has(self.end_offset):
                return None
        elif not self._snapshots.is_due(self.end_offset, self.settings.snapshot_interval_bytes):
            return None
        contents, active = self._contents, self._segments.active
        contents.producers.expire(now_ms=now_ms, expiry_ms=self.settings.producer_expiry_ms)
        chunks = aborted.take_chunks()
        snapshot = Snapshot(
            self.end_offset,
            contents.epochs.entries(),
            contents.producers.save(),
            [ClosedSegment(s.base_offset, s.size_bytes, s.max_timestamp) for s in self._segments.closed],
            Tail(active.base_offset, active.size_bytes, active.max_timestamp, active.opened_at_ms),
            self._cleaning.compacted_offset,
            contents.producers.transactions.save(),
            aborted.save(chunks),
        )
        obsolete_offsets = self._snapshots.on_taken(self.end_offset)
        return SnapshotWrite(self._storage.disk, self.directory, snapshot, obsolete_offsets, chunks)

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
        if not self.settings.compacts or self._writer.refusal:
            return None
        return self._cleaning.take(
            self.directory,
            self.settings,
            limit_offset=min(limit_offset, self.durable_offset),
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
        segment = replacement.segment
        if segment.base_offset <= self._scrub_cursor.base_offset < segment.end_offset:
            self._scrub_cursor = ScrubCursor(segment.base_offset, 0, segment.base_offset)
        return True

    def on_installed(self, replacement: Replacement) -> None:
        """The compacted segment's file has its name."""
        if not self._is_forgotten:
            self._cleaning.on_installed(replacement)

    def on_compacted(self, compaction: Compaction) -> None:
        """The pass is over."""
        self._cleaning.on_over(compaction)

    def close(self, now_ms: int) -> SnapshotWrite | None:
        """Prepare for a clean stop: call when all is durable, write the snapshot, then nothing more."""
        self._storage.flush_index(self._segments.active.index)
        self._writer.refusal = f"{self.name} is closed"
        return self.take_snapshot(now_ms, force=True)

    def forget(self) -> None:
        """The partition is being deleted: refuse writes and let go of its files.

        From here on the paths may be those of another partition of the same name. What was begun in the disk pool
        before comes to its end, and nothing of it is remembered under a path.
        """
        self._is_forgotten = True
        self._writer.refusal = f"{self.name} is deleted"
        for segment in self._segments.all:
            self._storage.let_go(segment)

    # What the above use

    def _cut(self, offset: Offset, *, is_whole: bool, now_ms: int) -> Cut:
        return Cut(
            self._storage.disk,
            self.directory,
            self.settings,
            list(self._segments.all),
            list(self._snapshots.offsets),
            offset=offset,
            start_offset=self.start_offset,
            durable_offset=self.durable_offset,
            is_whole=is_whole,
            now_ms=now_ms,
        )

    def _adopt(self, contents: Contents, snapshots: list[int]) -> None:
        report = contents.report
        self._contents = contents
        self._segments = Segments(contents.segments)
        self.start_offset = self.planned_start_offset = report.start_offset
        self.end_offset = report.end_offset
        self.durable_offset = report.durable_offset
        self._names_unsynced = [
            segment.base_offset
            for segment in contents.segments
            if segment.end_offset > report.durable_offset or segment.base_offset >= report.durable_offset
        ]
        self._snapshots = SnapshotSchedule(snapshots, unsaved_bytes=report.scanned_bytes)
        self._writer = Writer(self._storage, self.name)
        self._reader = Reader(self._storage, self.name, self._segments, contents)
        self._cleaning = Cleaning(self._storage, self._segments, contents, self._snapshots)

    def _check_may_write(self, leader_epoch: LeaderEpoch) -> None:
        if self._writer.refusal:
            raise StorageFailed(self._writer.refusal)
        if leader_epoch < self._contents.epochs.latest:
            raise FencedEpoch(
                f"{self.name}: epoch {leader_epoch} is over; {self._contents.epochs.latest} has written here"
            )

    def _write(
        self,
        batch: memoryview,
        header: BatchHeader,
        leader_epoch: LeaderEpoch,
        now_ms: int,
        marker: Marker | None,
    ) -> Appended:
        base_offset = self.end_offset
        end_offset = Offset(base_offset + header.last_offset_delta + 1)
        segment = self._segment_for(header.size_bytes, end_offset, now_ms)
        stamp(batch, base_offset=base_offset, leader_epoch=leader_epoch)
        self._writer.write(segment, batch, header.size_bytes)
        self._note(segment, header, base_offset, end_offset, leader_epoch)
        if header.producer_id >= 0:
            self._contents.producers.apply(header, base_offset, now_ms, marker)
        return Appended(base_offset, end_offset, False, header.size_bytes)

    def _forget_aborted_below(self, offset: int) -> list[str]:
        """Of what ended below nothing is left; answers the files that can go."""
        aborted = self._contents.producers.transactions.aborted
        return [path_of(self.directory, each, ABORTED_SUFFIX) for each in aborted.forget_below(offset)]

    def _segment_for(
        self, size_bytes: int, end_offset: int, now_ms: int, *, may_exceed: bool = False
    ) -> Segment:
        """The active segment, or a new one if the active may not take `size_bytes` more."""
        active = self._segments.active
        bytes_max = min(self.settings.segment_bytes, _SEGMENT_BYTES_LIMIT)
        if active.opened_at_ms is None:
            if size_bytes > bytes_max and not may_exceed:
                self._refuse_size(size_bytes)
            active.opened_at_ms = now_ms
            return active
        if (
            active.size_bytes + size_bytes > bytes_max
            or now_ms - active.opened_at_ms >= self.settings.segment_ms
            or end_offset - active.base_offset > RELATIVE_OFFSET_MAX
        ):
            if size_bytes > bytes_max and not may_exceed:
                self._refuse_size(size_bytes)
            self._roll()
            active = self._segments.active
            active.opened_at_ms = now_ms
        return active

    def _refuse_size(self, size_bytes: int) -> NoReturn:
        raise BatchExceedsSegment(
            f"{self.name}: a batch of {size_bytes} bytes exceeds a segment of {self.settings.segment_bytes}"
        )

    def _note(
        self,
        segment: Segment,
        header: BatchHeader,
        base_offset: Offset,
        end_offset: Offset,
        leader_epoch: LeaderEpoch,
    ) -> None:
        """The batch is in the file."""
        if leader_epoch != self._contents.epochs.latest:
            self._contents.epochs.assign(leader_epoch, base_offset)
        self._segments.tail.add(base_offset, segment.size_bytes)
        segment.note(base_offset, end_offset, header, self.settings.index_interval_bytes)
        self.end_offset = end_offset
        self._snapshots.unsaved_bytes += header.size_bytes
        if len(segment.index.pending) >= CHUNK_ENTRIES:
            self._storage.flush_index(segment.index)

    def _roll(self) -> None:
        """Close the active segment and begin the next. If the disk refuses, nothing has changed.

        An empty segment is as good as a new one, which would have the same name.
        """
        active = self._segments.active
        if active.base_offset == self.end_offset:
            return
        segment = self._writer.begin(self.directory, self.end_offset)
        self._storage.flush_index(active.index)
        self._names_unsynced.append(segment.base_offset)
        self._segments.begin(segment)
        self._snapshots.unsaved_bytes = self.settings.snapshot_interval_bytes

    def _search_times(self, limit_offset: Offset) -> TimeSearch:
        return self._reader.search_times(
            start_offset=self.start_offset,
            limit_offset=limit_offset,
            interval_bytes=self.settings.index_interval_bytes,
        )


def _is_over_time(segment: Segment, settings: LogSettings, now_ms: int) -> bool:
    return segment.opened_at_ms is not None and now_ms - segment.opened_at_ms >= settings.segment_ms


def _snapshots_in(disk: Disk, directory: str) -> list[int]:
    return offsets_of(disk.list(directory), SNAPSHOT_SUFFIX)
