"""Cutting a log back: what a follower does when its history parts from the leader's.

What a reader could get wrong
    Cutting below the recovery point looks like lost data to the next start, so the recovery point on disk is lowered
    first, to the `boundary_at` the offset (`Trimming.plan_cut`).
    Whatever speaks of the part that is cut (segments, indexes, snapshots) is gone, durably, before the log is written
    to again.
"""

from collections.abc import Sequence

from ropewalk.base.ports import Disk
from ropewalk.log.contents import Contents
from ropewalk.log.recovery import open_contents
from ropewalk.log.scan import VERIFY_NONE, Found, scan
from ropewalk.log.segment import SNAPSHOT_SUFFIX, Segment, offsets_of, path_of
from ropewalk.log.settings import LogSettings


class Cut:
    """A log on its way back: to an earlier end, or to nothing. Taken on the loop, run in the disk pool, handed back."""

    __slots__ = (
        "_directory",
        "_disk",
        "_durable_offset",
        "_is_whole",
        "_now_ms",
        "_reserved_disk",
        "_segments",
        "_settings",
        "_snapshot_offsets",
        "_start_offset",
        "contents",
        "offset",
        "snapshots_left",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        segments: Sequence[Segment],
        snapshot_offsets: Sequence[int],
        *,
        offset: int,
        start_offset: int,
        durable_offset: int,
        is_whole: bool,
        now_ms: int,
        reserved_disk: Disk | None = None,
    ) -> None:
        """`is_whole`: nothing is kept, and the log begins again at `offset`."""
        self._disk = disk
        self._directory = directory
        self._settings = settings
        self._segments = segments
        self._snapshot_offsets = snapshot_offsets
        self.offset = offset
        self._start_offset = offset if is_whole else start_offset
        self._durable_offset = offset if is_whole else durable_offset
        self._is_whole = is_whole
        self._now_ms = now_ms
        self._reserved_disk = reserved_disk
        self.contents: Contents | None = None
        self.snapshots_left: list[int] = []

    def run(self) -> None:
        if self._is_whole:
            clear(self._disk, self._directory, self._segments, self._snapshot_offsets)
            end_offset = self.offset
        else:
            end_offset = cut(self._disk, self._directory, self._segments, self._snapshot_offsets, self.offset)
        self.contents = open_contents(
            self._disk,
            self._directory,
            self._settings,
            recovery_point=min(self._durable_offset, end_offset),
            start_offset=self._start_offset,
            is_clean=False,
            now_ms=self._now_ms,
            reserved_disk=self._reserved_disk,
        )
        self.snapshots_left = offsets_of(self._disk.list(self._directory), SNAPSHOT_SUFFIX)


def boundary_at(disk: Disk, segment: Segment, offset: int) -> tuple[int, int]:
    """Offset and position at which the batch that contains `offset` begins. Blocks."""
    for piece in scan(
        disk.open(segment.path),
        position=0,
        end_position=segment.size_bytes,
        offset=segment.base_offset,
        verify_from=VERIFY_NONE,
    ):
        if isinstance(piece, Found) and piece.header.end_offset > offset:
            return piece.header.base_offset, piece.position
    return segment.end_offset, segment.size_bytes


def cut(
    disk: Disk, directory: str, segments: Sequence[Segment], snapshot_offsets: Sequence[int], offset: int
) -> int:
    """Remove everything from the batch that contains `offset` on; answers where the log ends now. Blocks."""
    for snapshot_offset in snapshot_offsets:
        if snapshot_offset > offset:
            disk.remove(path_of(directory, snapshot_offset, SNAPSHOT_SUFFIX))
    kept = [segment for segment in segments if segment.base_offset < offset] or segments[:1]
    for segment in segments[len(kept) :]:
        disk.remove(segment.path)
        disk.remove(segment.index.path)
    disk.sync_directory(directory)
    end_offset, position = boundary_at(disk, kept[-1], offset)
    file = disk.open(kept[-1].path)
    file.truncate(position)
    file.sync()
    return end_offset


def clear(disk: Disk, directory: str, segments: Sequence[Segment], snapshot_offsets: Sequence[int]) -> None:
    """Remove everything. Whatever a power cut leaves of it is the beginning of a log, or nothing. Blocks."""
    for snapshot_offset in snapshot_offsets:
        disk.remove(path_of(directory, snapshot_offset, SNAPSHOT_SUFFIX))
    for segment in reversed(segments):
        disk.remove(segment.path)
        disk.remove(segment.index.path)
    disk.sync_directory(directory)
