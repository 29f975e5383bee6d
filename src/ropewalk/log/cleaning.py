"""A log's part in its own compaction: what a pass is given, and how its segments take their place.

What a reader could get wrong
    `install` gives a compacted segment to readers before its file has its name. Until `on_installed` the segment is
    `is_moving`: its path still belongs to one of those it replaces.
    Whoever reads a replaced segment goes on reading: the segment keeps the file.
"""

from ropewalk.log.cleanable import Progress, decide_compaction
from ropewalk.log.compaction import Compaction
from ropewalk.log.contents import Contents
from ropewalk.log.rewrite import Replacement
from ropewalk.log.segments import Segments
from ropewalk.log.settings import LogSettings
from ropewalk.log.snapshot import SnapshotSchedule
from ropewalk.log.storage import Storage


class Cleaning:
    __slots__ = ("_contents", "_progress", "_segments", "_snapshots", "_storage")

    def __init__(
        self,
        storage: Storage,
        segments: Segments,
        contents: Contents,
        snapshots: SnapshotSchedule,
    ) -> None:
        self._storage = storage
        self._segments = segments
        self._contents = contents
        self._snapshots = snapshots
        self._progress = Progress(min(contents.compacted_offset, contents.report.end_offset))

    @property
    def compacted_offset(self) -> int:
        return self._progress.compacted_offset

    def take(
        self, directory: str, settings: LogSettings, *, limit_offset: int, now_ms: int, keys_max: int
    ) -> Compaction | None:
        """A pass over closed segments below `limit_offset`, if one is due.

        A damaged log is left alone: a record that cannot be read may be the last of its key.
        """
        contents = self._contents
        if len(contents.damaged):
            return None
        segments = decide_compaction(
            self._segments.all, settings, self._progress, limit_offset=limit_offset, now_ms=now_ms
        )
        if not segments:
            return None
        return Compaction(
            self._storage,
            directory,
            segments,
            settings,
            contents.epochs,
            compacted_offset=max(self._progress.compacted_offset, segments[0].base_offset),
            batches_kept=contents.producers.offsets_remembered(),
            aborted=contents.producers.transactions.aborted.look_up(
                self._storage.disk,
                directory,
                start_offset=segments[0].base_offset,
                end_offset=segments[-1].end_offset,
            ),
            now_ms=now_ms,
            keys_max=keys_max,
        )

    def install(self, replacement: Replacement) -> bool:
        """False if the log has changed under it, or was found damaged there."""
        replaced = [segment for segment, _ in replacement.sources]
        if not self._segments.has_in_a_row(replaced) or any(
            damaged.start_offset < replaced[-1].end_offset for damaged in self._contents.damaged
        ):
            return False
        for segment, file in replacement.sources:
            segment.retired_file = file
            self._storage.let_go(segment)
        segment = replacement.segment
        segment.is_moving = True
        self._storage.files.hold(segment.path, replacement.file)
        self._segments.replace(replaced, segment)
        self._contents.producers.transactions.aborted.hide_below(replacement.decided_offset)
        return True

    def on_installed(self, replacement: Replacement) -> None:
        segment = replacement.segment
        segment.is_moving = False
        # Files that nobody counts on any more are found and removed at the next start.
        self._contents.producers.transactions.aborted.forget_below(replacement.decided_offset)
        self._snapshots.on_removed(replacement.snapshot_offsets)
        if segment in self._segments:
            self._storage.files.unpin(segment.path)
            self._storage.flush_index(segment.index)

    def on_over(self, compaction: Compaction) -> None:
        if compaction.damaged is not None:
            self._contents.damaged.note(compaction.damaged)
        if compaction.is_complete:
            self._progress = Progress(compaction.compacted_offset, compaction.tombstones_due_at_ms)
        self._snapshots.on_compacted()
