"""Compaction: what is left of a log when only the last record of every key counts.

A pass reads the part of the log that was not compacted before and notes the last offset of every key; then it writes
all segments up to there anew, from the first, without the records that a later one of their key makes superfluous.

    compaction = maintenance.take_compaction(…)     on the loop; None if nothing is due
    compaction.run(bytes_max)                       in the disk pool, until `is_over`
    replacement = compaction.replacement            whenever there is one, before `run` is called again:
    maintenance.install(replacement)                    on the loop; readers find the compacted segment from here on
    replacement.run()                                   in the disk pool; so do later lives of the node
    maintenance.on_installed(replacement)               on the loop
    maintenance.on_compacted(compaction)            on the loop, at the end

Invariants
    Offsets never change, and the log stays without gaps: where whole batches go, an empty one takes up their offsets.
    So whatever tells damage from data in a log tells it in a compacted one. There is one such batch for every leader
    epoch, from which the epochs can be derived as before.
    The last record of a key stays. A tombstone stays until its delete horizon, which is set when the records before
    it have gone; segments are replaced from the first on, so they have gone for good by then.
    Nothing is copied that was not verified: compaction would give rotten bytes a valid CRC.
    Below the limit every transaction has ended. The records of aborted ones go and make no other superfluous. A marker stays
    while its transaction has records, and then until its delete horizon: readers and followers that met the
    records meet it.

Behaviour worth knowing
    Records without a key go, as in Kafka. A control batch that is no marker stays. A batch that cannot be opened stays as it is, unless its transaction was aborted.
    If a batch tells retries of its producer, it stays though empty; so does the last marker of one that is remembered.
    If the keys are too many for one pass, it ends before the first batch it has no room for, and the next goes on there.
"""

from collections.abc import Generator, Sequence

from ropewalk.base.errors import CorruptBatch, StorageFailed, UnsupportedCompression
from ropewalk.base.limits import (
    COMPACTION_MERGED_SEGMENTS_MAX,
    COMPACTION_RECORD_BYTES,
)
from ropewalk.log.aborted import AbortedLookup
from ropewalk.log.damage import DamagedRange
from ropewalk.log.epochs import LeaderEpochs
from ropewalk.log.index import RELATIVE_OFFSET_MAX
from ropewalk.log.latest import LatestOffsets
from ropewalk.log.rewrite import Replacement, Rewrite
from ropewalk.log.segment import Segment
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage
from ropewalk.log.transactions_met import TransactionsMet
from ropewalk.log.walk import Unreadable, walk
from ropewalk.records.batch import BatchHeader
from ropewalk.records.marker import read_marker
from ropewalk.records.sieve import Entry, OpenedBatch, emptied, is_placeholder, open_batch, rebuild


class Compaction:
    """One pass over one log."""

    def __init__(
        self,
        storage: Storage,
        directory: str,
        segments: Sequence[Segment],
        settings: LogSettings,
        epochs: LeaderEpochs,
        *,
        compacted_offset: int,
        batches_kept: frozenset[int],
        aborted: AbortedLookup,
        now_ms: int,
        keys_max: int,
    ) -> None:
        self._storage = storage
        self._directory = directory
        self._segments = segments
        self._settings = settings
        self._epochs = epochs
        self._batches_kept = batches_kept
        self._aborted = aborted
        self._transactions = TransactionsMet(())
        self._now_ms = now_ms
        self._latest = LatestOffsets(keys_max)
        self._work = self._pass()
        self._rewrite: Rewrite | None = None
        self.compacted_offset = compacted_offset
        """Up to where keys were noted; once all is over, up to where the log is compacted."""

        self.tombstones_due_at_ms: int | None = None
        """When the first of the tombstones and markers that stay may go."""

        self.replacement: Replacement | None = None
        """A segment that is ready to take the place of others. Set it to None when it has been seen to."""

        self.damaged: DamagedRange | None = None
        """What could not be read, and ended the pass."""

        self.trouble = ""
        """Why the pass could not go on, if it was not for damage."""

        self.is_over = False
        self.is_complete = False
        """Whether it came to its end, and not only to an end."""

        self.removed_count = 0
        self._erased_offset = 0

    def run(self, bytes_max: int) -> int:
        """Go on for about so many bytes, or until there is a replacement; answers how many it took. Blocks.

        A disk that refuses ends the pass with its `OSError`; what was replaced stays so. If the segments are deleted
        meanwhile, the pass just ends.
        """
        assert self.replacement is None, "a replacement waits to be seen to"
        spent_bytes = 0
        try:
            for step_bytes in self._work:
                spent_bytes += step_bytes
                if self.replacement is not None or spent_bytes >= bytes_max:
                    return spent_bytes
            self.is_complete = self.is_over = True
        except Unreadable as unreadable:
            self.damaged = unreadable.damaged
            self.abandon()
        except StorageFailed as error:
            self.trouble = str(error)
            self.abandon()
        except OSError as error:
            self.abandon()
            if not isinstance(error, FileNotFoundError):
                raise
        return spent_bytes

    def abandon(self) -> None:
        """End the pass here; what it was writing, and what was not installed, is of no use. Blocks."""
        self.is_over = True
        self._work.close()
        if self._rewrite is not None:
            self._rewrite.discard()
        if self.replacement is not None:
            self.replacement.discard()
        self._rewrite = self.replacement = None

    def _pass(self) -> Generator[int, None, None]:
        self._transactions = TransactionsMet(self._aborted.run())
        yield from self._note_keys()
        rewrite: Rewrite | None = None
        for segment in self._segments:
            if segment.base_offset >= self.compacted_offset:
                break
            if rewrite is not None and not self._may_join(rewrite, segment):
                yield from self._close(rewrite)
                rewrite = None
            if rewrite is None:
                rewrite = self._rewrite = Rewrite(self._storage, self._directory, segment, self._settings)
            file = self._storage.borrow_segment(segment)
            for header, batch in walk(segment, file, self._epochs):
                self._put(rewrite, header, batch)
                yield header.size_bytes * 2 + header.record_count * COMPACTION_RECORD_BYTES
            rewrite.end_source(segment, file)
        if rewrite is not None:
            yield from self._close(rewrite)

    def _note_keys(self) -> Generator[int, None, None]:
        for segment in self._segments:
            if segment.end_offset <= self.compacted_offset:
                continue
            for header, batch in walk(segment, self._storage.borrow_segment(segment), self._epochs):
                if header.end_offset > self.compacted_offset:
                    if self._latest.is_full:
                        return
                    opened = None
                    if not header.is_control and not self._transactions.has_aborted(header):
                        opened = _open(batch)
                    for entry in opened.entries if opened is not None else ():
                        if entry.key is not None:
                            self._latest.note(entry.key, entry.offset)
                    self.compacted_offset = header.end_offset
                yield header.size_bytes + header.record_count * COMPACTION_RECORD_BYTES

    def _may_join(self, rewrite: Rewrite, segment: Segment) -> bool:
        """Whether what is left of one more segment fits the file that is being written, at its largest.

        A file without records takes it in any case: alone it would never expire, having no timestamp.
        """
        return (
            len(rewrite.sources) < COMPACTION_MERGED_SEGMENTS_MAX
            and segment.end_offset - rewrite.segment.base_offset <= RELATIVE_OFFSET_MAX
            and (
                rewrite.size_bytes + segment.size_bytes <= self._settings.segment_bytes
                or rewrite.is_without_records
            )
        )

    def _close(self, rewrite: Rewrite) -> Generator[int, None, None]:
        if rewrite.is_worthwhile:
            self.replacement = rewrite.finish()
            self.replacement.decided_offset = min(rewrite.segment.end_offset, self.compacted_offset)
            self.replacement.erased_offset = self._erased_offset
        else:
            rewrite.discard()
        self._rewrite, self._erased_offset = None, 0
        yield 0

    def _put(self, rewrite: Rewrite, header: BatchHeader, batch: memoryview) -> None:
        """Write what is left of one batch."""
        if header.end_offset > self.compacted_offset:  # later records of its keys may not be known
            rewrite.copy(header, batch)
            return
        if is_placeholder(header):
            rewrite.pass_over(header)
        elif header.is_control:
            self._put_control(rewrite, header, batch)
        elif self._transactions.has_aborted(header):
            self.removed_count += header.record_count
            self._put_empty(rewrite, header, batch)
        else:
            self._put_records(rewrite, header, batch)

    def _put_records(self, rewrite: Rewrite, header: BatchHeader, batch: memoryview) -> None:
        opened = _open(batch)
        if opened is None:
            self._transactions.keep(header)
            rewrite.copy(header, batch)
            return
        kept = [entry for entry in opened.entries if self._stays(entry, header)]
        self.removed_count += len(opened.entries) - len(kept)
        if not kept:
            self._put_empty(rewrite, header, batch)
            return
        self._transactions.keep(header)
        horizon_ms = header.delete_horizon_ms
        has_tombstones = any(entry.is_tombstone for entry in kept)
        if has_tombstones and horizon_ms is None:
            horizon_ms = self._now_ms + self._settings.delete_retention_ms
            rewrite.replace(rebuild(opened, kept, delete_horizon_ms=horizon_ms))
        elif len(kept) < len(opened.entries):
            rewrite.replace(rebuild(opened, kept))
        else:
            rewrite.copy(header, batch)
        if has_tombstones and horizon_ms is not None:
            self._note_due(horizon_ms)

    def _put_empty(self, rewrite: Rewrite, header: BatchHeader, batch: memoryview) -> None:
        """No record of the batch is left."""
        if header.base_offset not in self._batches_kept:
            rewrite.drop(header)
        elif header.record_count:
            rewrite.replace(emptied(header))
        else:
            rewrite.copy(header, batch)

    def _put_control(self, rewrite: Rewrite, header: BatchHeader, batch: memoryview) -> None:
        """Keep a marker while anybody may need it."""
        has_records = self._transactions.end(header)
        is_marker = header.producer_id >= 0 and read_marker(batch) is not None
        opened = _open(batch) if is_marker else None
        if has_records or opened is None or header.base_offset in self._batches_kept:
            rewrite.copy(header, batch)
            return
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is None:
            horizon_ms = self._now_ms + self._settings.delete_retention_ms
            rewrite.replace(rebuild(opened, opened.entries, delete_horizon_ms=horizon_ms))
        elif horizon_ms <= self._now_ms:
            self._erased_offset = header.end_offset
            rewrite.drop(header)
            return
        else:
            rewrite.copy(header, batch)
        self._note_due(horizon_ms)

    def _note_due(self, horizon_ms: int) -> None:
        known_ms = self.tombstones_due_at_ms
        self.tombstones_due_at_ms = horizon_ms if known_ms is None else min(known_ms, horizon_ms)

    def _stays(self, entry: Entry, header: BatchHeader) -> bool:
        if entry.key is None or self._latest.has_later(entry.key, entry.offset):
            return False
        if not entry.is_tombstone:
            return True
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is None or horizon_ms > self._now_ms:
            return True
        self._erased_offset = entry.offset + 1
        return False


def _open(batch: memoryview) -> OpenedBatch | None:
    """None for a batch that cannot be opened."""
    try:
        return open_batch(batch)
    except (CorruptBatch, UnsupportedCompression):
        return None
