"""Where to go on when a checkpoint was lost, from the markers that tasks have left. A core.

Spark begins a batch when the one before is written by all tasks. So the markers of all tasks are of one batch, or of two that
follow each other: then the later one was being written when everything ended, and has to be finished first, with the very
ranges that it had. Tasks that have written it skip it.

What a reader could get wrong
    Whoever recovers also releases: every task's marker becomes one of nobody, which remembers whom it was taken from. Without that, an
    attempt of the former query that wakes up later could write the former query's next batch beside the new one's.
    A query that has not written anything yet has left no name to be remembered by: whoever loses its checkpoint must see to it that
    it has ended. If it has not, one of the two is refused.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.refusals import ReplayDiffers
from ropewalk.spark.sink.marker import FIRST_BATCH, FORMERS_MAX, NOBODY, Marker, Ranges


class Resumption(Struct, frozen=True):
    unfinished: Ranges | None
    """What some tasks have written and others not: the next batch must be exactly this. None if no batch is half written."""
    ends: dict[TopicPartition, int]
    """Where to go on afterwards."""


def resumption(markers: Sequence[Marker | None]) -> Resumption | None:
    """Of all tasks, in their order. None where nothing was written yet, so that one may begin anywhere."""
    found = [marker for marker in markers if marker is not None and not _is_blank(marker)]
    if not found:
        return None
    unknown = [marker for marker in found if marker.ranges is None]
    if unknown:
        raise ReplayDiffers(
            f"query {unknown[0].query} has written batch {unknown[0].batch} without saying what it read: where to go on cannot be"
            " told. Find the checkpoint, or begin with another name at offsets that you know to be right"
        )
    if {marker.tasks for marker in found} != {len(markers)}:
        counts = ", ".join(sorted({str(marker.tasks) for marker in found}))
        raise ReplayDiffers(
            f"batches were written by {counts} tasks, and now there are {len(markers)}; say tasks={counts}"
        )
    ranges = [marker.ranges for marker in found if marker.ranges is not None]
    newest = max(ranges, key=lambda each: (sum(end for _, end in each.values()), len(each)))
    ends = {partition: end for partition, (_, end) in newest.items()}
    behind = [each for each in ranges if _ends(each) != ends]
    starts = {partition: max(start, 0) for partition, (start, _) in newest.items()}
    is_apart = behind and len(found) < len(markers)
    if is_apart or any(not _follows(starts, each) for each in behind):
        raise ReplayDiffers(
            "the tasks' markers are more than one batch apart: other offsets were committed to the sink's groups, or some have"
            " expired. Begin with another name at offsets that you know to be right"
        )
    # A batch that reads nothing, of a topic that is empty or has got another partition, has no row that somebody could lack.
    is_half_written = (behind or len(found) < len(markers)) and any(
        end > max(start, 0) for start, end in newest.values()
    )
    return Resumption(newest if is_half_written else None, ends)


def released(markers: Sequence[Marker | None]) -> list[Marker]:
    """What every task's marker is to be, so that another query may go on and no former one."""
    formers: list[str] = []
    for marker in markers:
        if marker is not None:
            formers += [marker.query, *marker.formers]
    known = tuple(each for each in dict.fromkeys(formers) if each != NOBODY)[:FORMERS_MAX]
    return [
        Marker(
            NOBODY,
            FIRST_BATCH - 1,
            len(markers),
            "" if marker is None else marker.digest,
            None if marker is None else marker.ranges,
            known,
        )
        for marker in markers
    ]


def _ends(ranges: Ranges) -> dict[TopicPartition, int]:
    return {partition: end for partition, (_, end) in ranges.items()}


def _follows(starts: dict[TopicPartition, int], former: Ranges) -> bool:
    return all(starts.get(partition, end) == end for partition, end in _ends(former).items())


def _is_blank(marker: Marker) -> bool:
    """Released before anything was written."""
    return marker.query == NOBODY and marker.ranges is None
