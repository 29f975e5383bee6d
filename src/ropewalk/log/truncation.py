"""Cutting a log back: what a follower does when its history parts from the leader's.

What a reader could get wrong
    Cutting below the recovery point looks like lost data to the next start, so the recovery point on disk is lowered
    first (`DataDirectory.lower_recovery_point`), to the `boundary_at` the offset.
    Whatever speaks of the part that is cut (segments, indexes, snapshots) is gone, durably, before the log is written
    to again.
"""

from collections.abc import Sequence

from ropewalk.base.ports import Disk
from ropewalk.log.scan import VERIFY_NONE, Found, scan
from ropewalk.log.segment import SNAPSHOT_SUFFIX, Segment, path_of


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
