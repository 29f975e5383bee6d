"""Where to go on when a checkpoint was lost, from the markers that tasks have left. A core.

Spark begins a batch when the one before is written by all tasks. So the markers of all tasks are of one batch, or of two that
follow each other: then the later one was being written when everything ended, and has to be finished first, with the very
ranges that it had. Tasks that have written it skip it.

What a reader could get wrong
    Whoever recovers also releases: every task's marker becomes one of nobody, which remembers whom it was taken from. Without that, an
    attempt of the former query that wakes up later could write the former query's next batch beside the new one's.
    A query that has not written anything yet has left no name to be remembered by: whoever loses its checkpoint must see to it that
    it has ended. If it has not, one of the two is refused.
    Which marker is the later one is told by how far their ranges reach, and that only within one topic. Of two that name topics of which one
    took the other's place, the later one names the topic that is there.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.options import OnNewTopic
from ropewalk.spark.ranges import TopicIds, made_anew
from ropewalk.spark.refusals import DataLost, ReplayDiffers, said_of_made_anew
from ropewalk.spark.sink.marker import FIRST_BATCH, FORMERS_MAX, NOBODY, Marker, Ranges


class Resumption(Struct, frozen=True):
    unfinished: Ranges | None
    """What some tasks have written and others not: the next batch must be exactly this. None if no batch is half written."""
    ends: dict[TopicPartition, int]
    """Where to go on afterwards."""
    ids: TopicIds = {}
    """Of the topics that these are offsets of, as far as they are known."""


def resumption(markers: Sequence[Marker | None], topic_ids: TopicIds | None = None) -> Resumption | None:
    """Of all tasks, in their order. None where nothing was written yet, so that one may begin anywhere. `topic_ids`: of the topics that
    are there."""
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
    latest = _latest(found, topic_ids or {})
    newest = latest.ranges or {}
    behind = [each for each in found if _ends(each) != _ends(latest) or made_anew(each.ids, latest.ids)]
    is_apart = behind and len(found) < len(markers)
    if is_apart or any(not _follows(latest, each) for each in behind):
        raise ReplayDiffers(
            "the tasks' markers are more than one batch apart: others have written under the sink's name, or some are gone."
            " Begin with another name at offsets that you know to be right"
        )
    # A batch that reads nothing, of a topic that is empty or has got another partition, has no row that somebody could lack.
    is_half_written = (behind or len(found) < len(markers)) and any(
        end > max(start, 0) for start, end in newest.values()
    )
    return Resumption(newest if is_half_written else None, _ends(latest), latest.ids)


def in_topics(found: Resumption, topic_ids: TopicIds, *, on_new_topic: OnNewTopic) -> Resumption:
    """As far as it is about the topics that are there. Of one that was made anew everything is to be read, if that is allowed; if it is left
    out, it stays at what was read of the former one."""
    replaced = made_anew(found.ids, topic_ids)
    if not replaced:
        return found
    name = replaced[0]
    if on_new_topic == "refuse":
        raise DataLost(said_of_made_anew(name, found.ids[name], topic_ids[name]))
    lost = [
        partition
        for partition, (start, end) in sorted((found.unfinished or {}).items())
        if partition.topic in replaced and end > max(start, 0)
    ]
    if lost and found.unfinished is not None:
        start, end = found.unfinished[lost[0]]
        raise DataLost(
            f"offsets {max(start, 0)} to {end} of {lost[0]} were being written when the checkpoint was lost, some tasks have written their"
            f" part, and topic {found.ids[lost[0].topic]} is gone, which they were in: the rest cannot be made any more. Look at what the"
            " topic that was written to holds, then begin with another name"
        )
    if on_new_topic == "leave_out":
        return found
    kept = [each for each in found.ends if each.topic not in replaced]
    unfinished = found.unfinished and {
        each: found.unfinished[each] for each in kept if each in found.unfinished
    }
    ids = {name: id_ for name, id_ in found.ids.items() if name not in replaced}
    return Resumption(unfinished, {each: found.ends[each] for each in kept}, ids)


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
            {} if marker is None else marker.ids,
        )
        for marker in markers
    ]


def _latest(found: Sequence[Marker], topic_ids: TopicIds) -> Marker:
    present = [marker for marker in found if not made_anew(marker.ids, topic_ids)]
    return max(present or found, key=lambda each: (sum(_ends(each).values()), len(_ends(each))))


def _ends(marker: Marker) -> dict[TopicPartition, int]:
    return {partition: end for partition, (_, end) in (marker.ranges or {}).items()}


def _follows(later: Marker, former: Marker) -> bool:
    starts = {partition: max(start, 0) for partition, (start, _) in (later.ranges or {}).items()}
    replaced = made_anew(former.ids, later.ids)
    return all(
        starts.get(partition, end) == end
        for partition, end in _ends(former).items()
        if partition.topic not in replaced
    )


def _is_blank(marker: Marker) -> bool:
    """Released before anything was written."""
    return marker.query == NOBODY and marker.ranges is None
