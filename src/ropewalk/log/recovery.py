"""Opening a log: what is there, what of it is believed, and what is cut.

The rule
    The recovery point is an offset below which everything was durable. From there on every batch is checked:
    the first that is damaged, out of order or missing ends the log, and it and all after it are cut. Below the
    recovery point nothing is cut and no offset is given twice: what is damaged or missing there is a damaged
    range, and the log goes on at the recovery point, in a new segment if need be.

What a reader could get wrong
    What is accepted above the recovery point may be in the page cache only. It counts as durable when the next
    sync has covered it, not before. It is written again first: after a sync that failed the kernel believes pages
    to be clean that the disk never got, and a sync by the next process would do nothing about them.
    Repairs (a cut tail, removed segments, indexes and snapshots that speak of what was cut) are durable before
    the log is written to. Otherwise the next power cut could bring the removed files back, to lie beside a
    different continuation.
    No index is read here except to keep the part of it that lies below the scan.
    What was found damaged before is looked at again, wherever it lies: a scan would begin behind it.
"""

from collections.abc import Sequence
from itertools import pairwise

from ropewalk.base.ids import Offset
from ropewalk.base.ports import Disk
from ropewalk.log.aborted import AbortedTransactions
from ropewalk.log.contents import LEADER_EPOCH_MAX, Contents, Recovered
from ropewalk.log.damage import NO_SEGMENT, DamagedRange, is_bad_sector
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.log.partition_files import PartitionFiles
from ropewalk.log.places import Places
from ropewalk.log.producers import Producers
from ropewalk.log.replay import Replay
from ropewalk.log.scan import OFFSET_MAX, VERIFY_NONE, Damage, Found, scan
from ropewalk.log.segment import Segment
from ropewalk.log.settings import LogSettings
from ropewalk.log.snapshot import Snapshot
from ropewalk.log.transactions import Transactions


def open_contents(
    disk: Disk,
    directory: str,
    settings: LogSettings,
    *,
    recovery_point: int,
    start_offset: int,
    is_clean: bool,
    now_ms: int,
    leader_epoch_max: int = LEADER_EPOCH_MAX,
    reserved_disk: Disk | None = None,
    doubts: Sequence[DamagedRange] = (),
) -> Contents:
    """Read a partition's directory, repair it and say what it holds. Blocks.

    `reserved_disk` is the disk for what the log cannot be opened without, however full it is.
    No batch can be of an epoch above `leader_epoch_max`, the newest that the cluster has given out. A log with `doubts`, ranges
    that were found damaged before, is not taken as it was closed.
    """
    opening = _Opening(
        disk,
        directory,
        settings,
        # What was deleted by request had been durable: the start is checkpointed at or below the durable offset.
        recovery_point=max(recovery_point, start_offset),
        start_offset=start_offset,
        leader_epoch_max=leader_epoch_max,
        now_ms=now_ms,
        reserved_disk=reserved_disk,
    )
    if doubts or not (is_clean and opening.take_as_closed()):
        opening.recover()
    return opening.finish(doubts)


class _Opening:
    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        *,
        recovery_point: int,
        start_offset: int,
        leader_epoch_max: int,
        now_ms: int,
        reserved_disk: Disk | None,
    ) -> None:
        self._files = PartitionFiles(disk, directory, reserved_disk)
        self._settings = settings
        self._recovery_point = recovery_point
        self._start_offset = start_offset
        self._now_ms = now_ms
        self._segments: list[Segment] = []
        self._is_clean = False
        self._compacted_offset = 0
        self._replay = Replay(
            self._files,
            settings,
            recovery_point=recovery_point,
            leader_epoch_max=leader_epoch_max,
            end_offset=start_offset,
            now_ms=now_ms,
        )

    def take_as_closed(self) -> bool:
        """Whether the log was closed in order and is as it was left."""
        if not self._files.base_offsets or not self._files.snapshot_offsets:
            return False
        snapshot = self._files.snapshot(self._files.snapshot_offsets[-1])
        if (
            snapshot is None
            or snapshot.end_offset < self._recovery_point
            or not self._files.has_chunks(self._transactions_of(snapshot).aborted)
        ):
            return False
        tail = snapshot.tail
        if (
            self._files.base_offsets[-1] != tail.base_offset
            or self._files.size(tail.base_offset) != tail.size_bytes
        ):
            return False
        self._start_from(snapshot)
        if len(self._replay.damaged):
            return False
        self._replay.end_offset = snapshot.end_offset
        self._recovery_point = snapshot.end_offset
        self._is_clean = True
        return True

    def recover(self) -> None:
        self._replay.begin_anew()
        self._compacted_offset = 0
        snapshot = self._snapshot_to_start_from()
        if snapshot is not None:
            self._start_from(snapshot)
            scanned = self._segments.pop()
            remaining = [base for base in self._files.base_offsets if base > scanned.base_offset]
            self._replay.end_offset = snapshot.end_offset
        else:
            self._segments = []
            scanned = None
            remaining = list(self._files.base_offsets)
            self._replay.end_offset = min([self._start_offset, *remaining[:1]])
        while scanned is not None or remaining:
            if scanned is None:
                base_offset = remaining.pop(0)
                if not self._replay.may_continue_at(base_offset):
                    self._cut_segments([base_offset, *remaining])
                    break
                scanned = Segment(self._files.directory, base_offset)
            self._segments.append(scanned)
            if not self._replay.take(scanned, remaining[0] if remaining else OFFSET_MAX):
                self._cut_segments(remaining)
                break
            scanned = None
        self._files.remove_snapshots_above(self._recovery_point)
        self._files.remove_stray_indexes()

    def finish(self, doubts: Sequence[DamagedRange]) -> Contents:
        found = self._replay
        self._remove_what_was_deleted()
        for doubt in doubts:
            if doubt.end_offset <= found.end_offset and not self._is_whole(doubt):
                found.damaged.note(doubt)
        if found.end_offset < self._recovery_point:
            base_offset = self._segments[-1].base_offset if self._segments else NO_SEGMENT
            end_position = self._segments[-1].size_bytes if self._segments else 0
            found.damaged.note(
                DamagedRange(found.end_offset, self._recovery_point, base_offset, end_position, end_position)
            )
            found.producers.note_damage()
            found.end_offset = self._recovery_point
            if self._segments:
                self._segments[-1].end_offset = found.end_offset
        last = self._segments[-1] if self._segments else None
        ends_damaged = any(damaged.end_offset == found.end_offset for damaged in found.damaged)
        # Behind a damaged end nothing is appended: a later scan could not tell where the damage stops.
        if last is None or (ends_damaged and last.base_offset < found.end_offset):
            self._segments.append(self._files.create(found.end_offset))
        found.damaged.keep_within(start_offset=self._start_offset, end_offset=found.end_offset)
        if self._settings.rewrites_tail:
            for segment, start_position in found.unsynced_from.items():
                self._files.rewrite(segment, start_position)
        self._files.remove_stray_chunks(found.producers.transactions.aborted)
        self._files.sync_names()
        for segment in self._segments[:-1]:
            self._files.flush_index(segment)
        return Contents(
            self._segments,
            found.epochs,
            found.producers,
            found.places,
            found.damaged,
            Recovered(
                self._is_clean,
                Offset(self._start_offset),
                Offset(found.end_offset),
                Offset(min(self._recovery_point, found.end_offset)),
                found.scanned_bytes,
                found.cut_bytes,
                found.cut_reason,
                tuple(found.damaged),
            ),
            self._compacted_offset,
        )

    def _remove_what_was_deleted(self) -> None:
        """Go on with a deletion that had not come to its end: remove segments wholly below the start, all but the last.

        Only now that they have been replayed: perhaps nothing else tells of the producers that wrote there.
        """
        segments, found = self._segments, self._replay
        while len(segments) > 1 and segments[1].base_offset <= self._start_offset:
            self._files.remove_segment(segments.pop(0).base_offset)
        if segments:
            found.epochs = found.epochs.from_offset(segments[0].base_offset)
        found.producers.transactions.aborted.forget_below(self._start_offset)
        found.places.forget_below(self._start_offset)

    def _start_from(self, snapshot: Snapshot) -> None:
        """Take over what the snapshot knows: all segments up to its tail."""
        self._replay.epochs = LeaderEpochs(snapshot.epochs)
        self._replay.producers = Producers(snapshot.producers, self._transactions_of(snapshot))
        self._replay.places = Places(snapshot.places)
        # Compaction drops the batches of producers that were forgotten, so they must not come back half known.
        self._replay.producers.expire(now_ms=self._now_ms, expiry_ms=self._settings.producer_expiry_ms)
        self._compacted_offset = snapshot.compacted_offset
        self._segments = []
        closed = {summary.base_offset: summary for summary in snapshot.closed}
        base_offsets = [base for base in self._files.base_offsets if base <= snapshot.tail.base_offset]
        if self._start_offset < base_offsets[0]:
            self._replay.note_damage(self._start_offset, base_offsets[0])
        for base_offset, end_offset in pairwise(base_offsets):
            segment = self._open_closed(base_offset, end_offset)
            summary = closed.get(base_offset)
            if summary is not None and summary.size_bytes == segment.size_bytes:
                segment.max_timestamp = summary.max_timestamp
            else:
                self._summarise(segment)
            self._segments.append(segment)
        tail = snapshot.tail
        last = Segment(
            self._files.directory,
            tail.base_offset,
            index_flushed_bytes=self._files.index_size(tail.base_offset),
            size_bytes=tail.size_bytes,
        )
        last.end_offset = snapshot.end_offset
        last.max_timestamp = tail.max_timestamp
        last.opened_at_ms = tail.opened_at_ms
        self._segments.append(last)

    def _is_whole(self, doubt: DamagedRange) -> bool:
        """Whether a range that was found damaged can be read, as far as anybody can tell."""
        segment = next(
            (each for each in self._segments if each.base_offset == doubt.segment_base_offset), None
        )
        if segment is None or segment.size_bytes < doubt.end_position:
            return False
        offset = doubt.start_offset
        try:
            for piece in scan(
                self._files.open(segment),
                position=doubt.start_position,
                end_position=doubt.end_position,
                offset=offset,
                end_offset=doubt.end_offset,
                epochs=self._replay.epochs,
            ):
                if isinstance(piece, Damage):
                    return False
                offset = piece.header.end_offset
        except OSError as error:
            if not is_bad_sector(error):
                raise
            return False
        return offset == doubt.end_offset

    def _transactions_of(self, snapshot: Snapshot) -> Transactions:
        aborted = AbortedTransactions(snapshot.aborted)
        aborted.forget_below(self._start_offset)
        return Transactions(snapshot.transactions, aborted)

    def _snapshot_to_start_from(self) -> Snapshot | None:
        for offset in reversed(self._files.snapshot_offsets):
            if offset > self._recovery_point:
                continue
            snapshot = self._files.snapshot(offset)
            if snapshot is None:
                continue
            tail = snapshot.tail
            if (
                tail.base_offset in self._files.base_offsets
                and self._files.size(tail.base_offset) >= tail.size_bytes
                and self._files.has_chunks(self._transactions_of(snapshot).aborted)
            ):
                return snapshot
        return None

    def _open_closed(self, base_offset: int, end_offset: int) -> Segment:
        segment = Segment(
            self._files.directory,
            base_offset,
            index_flushed_bytes=self._files.index_size(base_offset),
            size_bytes=self._files.size(base_offset),
        )
        segment.end_offset = end_offset
        return segment

    def _summarise(self, segment: Segment) -> None:
        """Find the largest timestamp of a segment that no snapshot describes."""
        for piece in scan(
            self._files.open(segment),
            position=0,
            end_position=segment.size_bytes,
            offset=segment.base_offset,
            end_offset=segment.end_offset,
            verify_from=VERIFY_NONE,
        ):
            if isinstance(piece, Found):
                segment.max_timestamp = max(segment.max_timestamp, piece.header.max_timestamp)
                self._replay.scanned_bytes += piece.header.size_bytes

    def _cut_segments(self, base_offsets: list[int]) -> None:
        for base_offset in base_offsets:
            self._replay.cut_bytes += self._files.size(base_offset)
            self._files.remove_segment(base_offset)
