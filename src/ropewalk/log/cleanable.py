"""Whether a log is worth compacting, and how far: a decision, without any I/O.

Behaviour worth knowing
    The active segment is never compacted, nor a segment that reaches beyond `limit_offset`, nor, with
    `min.compaction.lag.ms`, one whose largest timestamp is too young. What comes after such a segment waits too.
    A pass is due when the share of bytes not yet compacted reaches `min.cleanable.dirty.ratio`, when a record has
    waited for `max.compaction.lag.ms`, or when tombstones have been kept for long enough.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.log.segment import Segment
from ropewalk.log.settings import LogSettings


class Progress(Struct, frozen=True, gc=False):
    """What earlier passes came to."""

    compacted_offset: int
    """Below it every record has been compared with all later ones at least once."""

    tombstones_due_at_ms: int | None = None
    """When the first tombstone may go that was met so far; None if none is known."""


def decide_compaction(
    segments: Sequence[Segment], settings: LogSettings, progress: Progress, *, limit_offset: int, now_ms: int
) -> Sequence[Segment]:
    """The segments to compact, from the first; none if it is not worth it. `segments` are all of a log's."""
    cleanable: list[Segment] = []
    clean_bytes = dirty_bytes = 0
    is_overdue = False
    for segment in segments[:-1]:
        if segment.end_offset > limit_offset:
            break
        if segment.end_offset <= progress.compacted_offset:
            clean_bytes += segment.size_bytes
        else:
            if now_ms - segment.max_timestamp < settings.min_compaction_lag_ms:
                break
            dirty_bytes += segment.size_bytes
            is_overdue = is_overdue or _waiting_since_ms(segment) <= now_ms - settings.max_compaction_lag_ms
        cleanable.append(segment)
    due_at_ms = progress.tombstones_due_at_ms
    if due_at_ms is not None and due_at_ms <= now_ms:
        return cleanable
    if not dirty_bytes:
        return ()
    ratio = dirty_bytes / (clean_bytes + dirty_bytes)
    return cleanable if is_overdue or ratio >= settings.min_cleanable_dirty_ratio else ()


def _waiting_since_ms(segment: Segment) -> int:
    """When its first record came; where that is forgotten, when its last did."""
    return segment.max_timestamp if segment.opened_at_ms is None else segment.opened_at_ms
