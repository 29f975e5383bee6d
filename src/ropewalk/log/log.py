"""One partition on disk: what is written to it, what is read from it, and how far it goes.

Everything here is called on the event loop and answers at once, except `open` and the two look-ups by time, which block and
belong in the disk pool. How a log becomes shorter is in `trimming`, what is done to it in the background in `maintenance`.
Work for the pool that changes with the log is taken on the loop as an object with a `run` method, run in the pool, and
handed back to an `on_…` method on the loop.

Invariants
    `start_offset ≤ durable_offset ≤ end_offset` once the log is open; none of them moves back, except by
    a cut.
    The last segment ends where the log does.
    A batch is in the file whole or not at all (`Writer`).

What a reader could get wrong
    A cut leaves another log: `producers`, `trimming` and `maintenance` are to be asked for anew each time, and not kept.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.errors import CorruptBatch, FencedEpoch, OffsetOutOfRange, StorageFailed
from ropewalk.base.ids import LeaderEpoch, Offset
from ropewalk.log.aborted import AbortedLookup
from ropewalk.log.aborted import AbortedTransaction as AbortedTransaction
from ropewalk.log.contents import LEADER_EPOCH_MAX, Contents, Recovered
from ropewalk.log.damage import DamagedRange
from ropewalk.log.epochs import EpochEnd
from ropewalk.log.erasures import Erasures
from ropewalk.log.maintenance import Maintenance
from ropewalk.log.places import Places
from ropewalk.log.producers import Producers
from ropewalk.log.reader import Reader
from ropewalk.log.recovery import open_contents
from ropewalk.log.segment import SNAPSHOT_SUFFIX, TIMESTAMP_NONE, offsets_of
from ropewalk.log.segments import Segments
from ropewalk.log.settings import LogSettings
from ropewalk.log.snapshot import SnapshotSchedule, SnapshotWrite
from ropewalk.log.span import Span as Span
from ropewalk.log.storage import Storage
from ropewalk.log.times import TimedOffset as TimedOffset
from ropewalk.log.times import TimeSearch
from ropewalk.log.trimming import Trimming
from ropewalk.log.writer import SyncTargets as SyncTargets
from ropewalk.log.writer import Writer
from ropewalk.records.batch import CONTROL, BatchHeader, decode_header, stamp
from ropewalk.records.control import StateKey, read_state_key
from ropewalk.records.marker import Marker, TransactionMarker, build_marker, read_marker


class Appended(Struct, frozen=True, gc=False):
    base_offset: Offset
    end_offset: Offset
    duplicate: bool
    """The batch was in the log already, at these offsets."""

    size_bytes: int = 0
    """Of what was written."""


class Log:
    __slots__ = (
        "_contents",
        "_reader",
        "_segments",
        "_storage",
        "_writer",
        "directory",
        "durable_offset",
        "end_offset",
        "erasures",
        "is_forgotten",
        "maintenance",
        "name",
        "producers",
        "settings",
        "start_offset",
        "trimming",
    )
    start_offset: Offset
    durable_offset: Offset
    end_offset: Offset
    producers: Producers
    """Who has written here, and what they have open. To be looked at: what is appended alone changes it."""

    trimming: Trimming
    maintenance: Maintenance

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
        self.is_forgotten = False
        self.adopt(contents, snapshots)
        self.erasures = Erasures(self.end_offset)

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
        doubts: Sequence[DamagedRange] = (),
    ) -> "Log":
        """Read and repair the partition in `directory`, which exists. Blocks. `recovered` says what was found.

        `clean` says that the node stopped in order; a log that is not as it was left then is recovered all the same.
        `leader_epoch_max` is the newest epoch that the cluster has given to the partition: no batch can be of a later
        one, however its bits have turned. `doubts` are ranges that were found damaged before.
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
            reserved_disk=storage.disk_to_go_on,
            doubts=doubts,
        )
        snapshots = offsets_of(storage.disk.list(directory), SNAPSHOT_SUFFIX)
        return cls(storage, directory, settings, contents, snapshots)

    @property
    def recovered(self) -> Recovered:
        return self._contents.report

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

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
    def has_room(self) -> bool:
        """Whether the disk takes records, as far as is known."""
        return not self._storage.reserve.is_full

    @property
    def recovery_point(self) -> Offset:
        """For the checkpoint: below it everything is on disk, names included, and will stay."""
        cut_offset = self.trimming.cut_offset
        return self.durable_offset if cut_offset is None else min(cut_offset, self.durable_offset)

    @property
    def places(self) -> Places:
        """Where the state of each owner begins. To be looked at: what is appended and deleted alone changes it."""
        return self._contents.places

    @property
    def damaged(self) -> tuple[DamagedRange, ...]:
        return tuple(self._contents.damaged)

    # Writing

    def append(
        self, batch: memoryview, header: BatchHeader, *, leader_epoch: LeaderEpoch, now_ms: int
    ) -> Appended:
        """Write one valid batch at the end, stamped in place with its offset and epoch.

        Refuses with `OutOfOrderSequence`, `ProducerFenced` and `InvalidTransactionState` what its producer may not send now, with
        `BatchExceedsSegment` what fits no segment, and with `StorageFailed` (`DiskFull`) what the disk does not take. A refused
        batch leaves no trace. Runs to the end without suspending.
        """
        self._check_may_write(leader_epoch)
        if header.producer_id >= 0:
            before = self.producers.check(header)
            if before is not None:
                return Appended(Offset(before[0]), Offset(before[1]), True)
        elif header.attributes & CONTROL:
            state = read_state_key(header, batch)
            return self._write(batch, header, leader_epoch, now_ms, None, state)
        return self._write(batch, header, leader_epoch, now_ms, None)

    def append_marker(
        self, marker: TransactionMarker, *, leader_epoch: LeaderEpoch, now_ms: int
    ) -> Appended | None:
        """End a producer's transaction; None if that very marker was written before.

        Refuses as `Producers.check_marker` and `append` do.
        """
        self._check_may_write(leader_epoch)
        if not self.producers.check_marker(marker):
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
        segment = self._writer.segment_for(
            header.size_bytes, header.end_offset, now_ms, self.settings, may_exceed=True
        )
        self._writer.write(segment, batch, header, header.base_offset, header.end_offset, self.settings)
        marker = state = None
        if header.attributes & CONTROL:
            if header.producer_id >= 0:
                marker = read_marker(batch[: header.size_bytes])
            else:
                state = read_state_key(header, batch)
        self._note(header, header.base_offset, header.end_offset, header.leader_epoch, now_ms, marker, state)

    def sync_targets(self) -> SyncTargets:
        return self._writer.sync_targets(durable_offset=self.durable_offset, end_offset=self.end_offset)

    def on_synced(self, end_offset: Offset) -> None:
        """Everything that `sync_targets` listed when the log ended at `end_offset` is on disk."""
        if end_offset > self.durable_offset:
            self._writer.on_synced(durable_offset=self.durable_offset, end_offset=end_offset)
            self.durable_offset = end_offset

    def roll_if_due(self, now_ms: int) -> None:
        """Close an active segment whose time is over although nothing is appended, so that retention can reach it."""
        self._writer.roll_if_due(self.settings, now_ms)

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
        """`span.read` has answered in the disk pool: remember what it opened, loaded and verified.

        Not while the log is being cut: what was opened may be gone, and its path that of another file before long.
        """
        if not self.is_forgotten and self.trimming.cut_offset is None:
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
        stable_offset = self.producers.transactions.stable_offset(high_watermark)
        return (
            high_watermark
            if stable_offset == high_watermark
            else max(self.start_offset, Offset(stable_offset))
        )

    def aborted_in(self, start_offset: Offset, end_offset: Offset) -> AbortedLookup:
        """The aborted transactions with records in that range, to be looked up: at hand, or in the disk pool.

        It tells of the records as they are found now; those that are read later must have been located by now.
        """
        return self.producers.transactions.aborted.look_up(
            self._storage.disk, self.directory, start_offset=start_offset, end_offset=end_offset
        )

    # Its life

    def close(self, now_ms: int) -> SnapshotWrite | None:
        """Prepare for a clean stop: call when all is durable, write the snapshot, then nothing more."""
        self._storage.flush_index(self._segments.active.index)
        self._writer.refusal = f"{self.name} is closed"
        return self.maintenance.take_snapshot(now_ms, force=True)

    def forget(self) -> None:
        """The partition is being deleted: refuse writes and let go of its files.

        From here on the paths may be those of another partition of the same name. What was begun in the disk pool
        before comes to its end, and nothing of it is remembered under a path.
        """
        self.is_forgotten = True
        self._writer.refusal = f"{self.name} is deleted"
        for segment in self._segments.all:
            self._storage.let_go(segment)

    # How it changes as a whole

    def begin_at(self, offset: Offset) -> None:
        """Start there, unless it starts later already. `Trimming` knows when that may be."""
        self.start_offset = max(self.start_offset, offset)

    def adopt(self, contents: Contents, snapshots: list[int]) -> None:
        """Be what was found in the directory; nothing of what was known before holds any more."""
        storage, report = self._storage, contents.report
        self.start_offset = report.start_offset
        self.durable_offset = report.durable_offset
        self.end_offset = report.end_offset
        self.producers = contents.producers
        self._contents = contents
        self._segments = segments = Segments(contents.segments)
        assert segments.active.end_offset == self.end_offset, f"{self.name}: the last segment ends elsewhere"
        schedule = SnapshotSchedule(snapshots, unsaved_bytes=report.scanned_bytes)
        self._writer = writer = Writer(
            storage, self.directory, self.name, segments, schedule, durable_offset=self.durable_offset
        )
        self._reader = Reader(storage, self.name, segments, contents)
        self.trimming = Trimming(self, storage, segments, contents, schedule, writer)
        self.maintenance = Maintenance(self, storage, segments, contents, schedule, writer)

    # What the above use

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
        state: StateKey | None = None,
    ) -> Appended:
        base_offset = self.end_offset
        end_offset = Offset(base_offset + header.last_offset_delta + 1)
        segment = self._writer.segment_for(header.size_bytes, end_offset, now_ms, self.settings)
        stamp(batch, base_offset=base_offset, leader_epoch=leader_epoch)
        self._writer.write(segment, batch, header, base_offset, end_offset, self.settings)
        self._note(header, base_offset, end_offset, leader_epoch, now_ms, marker, state)
        return Appended(base_offset, end_offset, False, header.size_bytes)

    def _note(
        self,
        header: BatchHeader,
        base_offset: Offset,
        end_offset: Offset,
        leader_epoch: LeaderEpoch,
        now_ms: int,
        marker: Marker | None,
        state: StateKey | None,
    ) -> None:
        """The batch is in the file: all that is derived from the log follows. Nothing here can fail."""
        if leader_epoch != self._contents.epochs.latest:
            self._contents.epochs.assign(leader_epoch, base_offset)
        self.end_offset = end_offset
        if header.producer_id >= 0:
            self.producers.apply(header, base_offset, now_ms, marker)
        elif state is not None:
            self._contents.places.note(state, base_offset)

    def _search_times(self, limit_offset: Offset) -> TimeSearch:
        return self._reader.search_times(
            start_offset=self.start_offset,
            limit_offset=limit_offset,
            interval_bytes=self.settings.index_interval_bytes,
        )
