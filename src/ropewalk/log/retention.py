"""Which segments a log no longer owes anybody: a decision, without any I/O.

Behaviour worth knowing
    The age of a segment is that of its largest timestamp. Timestamps are the producers' unless the topic stamps
    them, so one record from the future keeps its segment.
    Only a prefix of the log goes, in whole segments, and nothing above `limit_offset`.
    The active segment goes only when all of it has expired, or was deleted by request; it must be rolled first.
    A segment without any timestamp never expires by time.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.log.segment import Segment
from ropewalk.log.settings import UNLIMITED, LogSettings


class Decision(Struct, frozen=True, gc=False):
    start_offset: int
    """Where the log may begin."""

    rolls: bool
    """The active segment is to go as well."""


def decide_retention(
    segments: Sequence[Segment], settings: LogSettings, *, start_offset: int, limit_offset: int, now_ms: int
) -> Decision:
    """`segments` are all of a log's, the active one last."""
    excess_bytes = 0
    if settings.retention_bytes != UNLIMITED:
        excess_bytes = sum(segment.size_bytes for segment in segments) - settings.retention_bytes
    kept_from = 0
    for segment in segments[:-1]:
        is_excess = excess_bytes >= segment.size_bytes or segment.end_offset <= start_offset
        if segment.end_offset > limit_offset or not (is_excess or _is_expired(segment, settings, now_ms)):
            break
        excess_bytes -= segment.size_bytes
        kept_from += 1
    first_offset = segments[kept_from].base_offset
    if first_offset <= limit_offset:  # a segment that was lost may have left a first one that lies beyond
        start_offset = max(start_offset, first_offset)
    active = segments[-1]
    rolls = (
        kept_from == len(segments) - 1
        and active.size_bytes > 0
        and active.end_offset <= limit_offset
        and (active.end_offset <= start_offset or _is_expired(active, settings, now_ms))
    )
    return Decision(max(start_offset, active.end_offset) if rolls else start_offset, rolls)


def _is_expired(segment: Segment, settings: LogSettings, now_ms: int) -> bool:
    return (
        settings.retention_ms != UNLIMITED
        and segment.max_timestamp >= 0
        and now_ms - segment.max_timestamp > settings.retention_ms
    )
