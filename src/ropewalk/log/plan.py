"""Where in a segment to read, as far as its index tells.

What a reader could get wrong
    A plan is exact if it begins with the batch that contains the wanted offset and ends where a batch ends: then what is
    read is the answer. Consumers that read on from where they were have exact plans, because answers end at
    index entries. Otherwise the batches are walked.
    Known damage is kept out of a plan at both ends.
"""

from bisect import bisect_right

from msgspec import Struct

from ropewalk.log.damage import DamagedRanges
from ropewalk.log.index import Columns
from ropewalk.log.segment import Segment


class Plan(Struct, frozen=True, gc=False):
    """Where to read."""

    position: int
    base_offset: int
    """Of the batch that begins at `position`."""

    stop_position: int
    """Up to where to read. At least one whole batch from the wanted offset on lies before it."""

    is_exact: bool
    """The wanted offset is in the first batch, and a batch ends at `stop_position`: nothing need be searched."""

    end_base_offset: int | None
    """The base offset that must stand at `stop_position`; None where the log itself says that a batch ends there."""

    is_certain: bool
    """The positions come from this process, not from an index file."""


class Wanted(Struct, frozen=True, gc=False):
    """What a reader asked for, within one segment, as the segment stood at that moment."""

    offset: int
    end_offset: int
    """No batch at or beyond it."""

    end_position: int | None
    """Where `end_offset` stands; None if only the index or the batches can tell."""

    segment_end_offset: int
    segment_end_position: int
    bytes_max: int


def make_plan(segment: Segment, damaged: DamagedRanges, wanted: Wanted, loaded: Columns | None) -> Plan:
    """Where to read for `wanted`, as far as the index tells. `loaded` is what the index file holds."""
    entries = segment.index.pending
    pending = entries
    relative_offset = wanted.offset - segment.base_offset
    is_certain = True
    if not len(pending) or relative_offset < pending.offsets[0]:
        entries = loaded if loaded is not None else Columns()
        is_certain = loaded is None
    at = entries.floor(relative_offset)
    if at >= 0:
        position, base_offset = entries.positions[at], segment.base_offset + entries.offsets[at]
    else:
        position, base_offset = 0, segment.base_offset
    if at + 1 < len(entries):
        next_position = entries.positions[at + 1]
    elif entries is not pending and len(pending):
        next_position = pending.positions[0]
    else:
        next_position = wanted.segment_end_position

    end_offset, end_position = wanted.end_offset, wanted.end_position
    segment_end_position = wanted.segment_end_position
    if len(damaged):
        for stretch in damaged:
            if stretch.segment_base_offset != segment.base_offset:
                continue
            if stretch.end_offset <= wanted.offset and stretch.end_position > position:
                position, base_offset = stretch.end_position, stretch.end_offset
            if wanted.offset < stretch.start_offset < end_offset:
                end_offset, end_position = stretch.start_offset, stretch.start_position
                segment_end_position = min(segment_end_position, stretch.start_position)
        next_position = min(max(next_position, position), segment_end_position)

    is_start_exact = base_offset == wanted.offset
    wanted_end = position + wanted.bytes_max
    if is_start_exact:
        if end_position is not None and end_position <= wanted_end:
            return Plan(position, base_offset, end_position, True, None, is_certain)
        last = _last_boundary(entries, pending, segment.base_offset, position=wanted_end, offset=end_offset)
        if last is not None and last[0] > position:
            return Plan(position, base_offset, last[0], True, last[1], is_certain)
    stop_position = min(max(next_position, wanted_end), segment_end_position)
    return Plan(position, base_offset, stop_position, False, None, is_certain)


def _last_boundary(
    entries: Columns, pending: Columns, segment_base_offset: int, *, position: int, offset: int
) -> tuple[int, int] | None:
    """The last batch, as position and base offset, that begins at or before both bounds."""
    if entries is not pending and len(pending) and pending.positions[0] <= position:
        in_pending = _last_boundary(pending, pending, segment_base_offset, position=position, offset=offset)
        if in_pending is not None:
            return in_pending
    at = (
        min(
            bisect_right(entries.positions, position),
            bisect_right(entries.offsets, offset - segment_base_offset),
        )
        - 1
    )
    if at < 0:
        return None
    return entries.positions[at], segment_base_offset + entries.offsets[at]
