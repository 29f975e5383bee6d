"""What makes a replay harmless: of every batch each task leaves a marker, in the same transaction as its rows.

A core. Before it writes, a task has fenced whoever wrote under its name, and reads the marker that counts; `decide` says
whether the rows are to be written or were written already.

Invariants
    A task writes the rows of a batch once, whatever dies and whoever tries again: the marker counts exactly if the rows do.
    It writes a batch only if it has written the one before. What cannot be told is refused, never guessed.

What a reader could get wrong
    The marker is a task's own, not the batch's: of one batch some tasks may have written and others not. Rows must therefore come
    to the same task in every attempt, which is why the number of tasks is part of the marker and may not change. In the first batch
    some tasks have no marker yet: they go by the one that whoever was first has left for all (`first`).
    A query that lost its checkpoint counts batches from 0 again and has another id. Its batches are known by what they read:
    they go on if they begin where the marker ends, and are a replay if they are the same ranges.
    Offsets mean something in one topic. Of a source that was made anew under its name nothing was written yet, whatever its offsets are; a
    marker of before ids were kept, or of brokers that have none, is taken for one of the topic that is there.
    The digest is of the ranges where these are known, and of the rows where not. In the second case it is known only when the
    rows have been seen: `READ_FIRST`.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from enum import Enum
from hashlib import sha256
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.ranges import IDS, TopicIds, made_anew, to_json
from ropewalk.spark.refusals import MarkerLost, ReplayDiffers, WrongUse

Ranges: TypeAlias = dict[TopicPartition, tuple[int, int]]
"""What a batch has read: of each partition the first offset and the end, which is not included."""

MARKER_BYTES_MAX: Final = 1 << 18
"""A quarter of the largest batch that brokers take by default, and some fifty thousand partitions. Ranges that do not fit are left out."""

PLAIN_BYTES_MAX: Final = 4096
"""Longer ranges are packed: a marker is written for each task and batch."""

FIRST_BATCH: Final = 0
NOBODY: Final = ""
"""The query of a marker that waits for whoever goes on; see `recovery.py`."""
FORMERS_MAX: Final = 8
"""So many takeovers ago, nobody is left who could wake up."""


class Marker(Struct, frozen=True):
    query: str
    """The id of the streaming query; a checkpoint keeps it."""
    batch: int
    tasks: int
    digest: str | None
    """None while the rows have not been seen."""
    ranges: Ranges | None = None
    formers: tuple[str, ...] = ()
    """Queries that were taken over from: what is left of them may not write any more."""
    ids: TopicIds = {}
    """Of the topics that the ranges are in, as far as they are known."""


class Decision(Enum):
    WRITE = "the rows are not there yet"
    SKIP = "they are there"
    READ_FIRST = "they are there, if they are the same: ask again with their digest"


def decide(stored: Marker | None, offered: Marker, first: Marker | None = None) -> Decision:
    """What a task does with a batch. Raises `ReplayDiffers` and `MarkerLost` where neither writing nor skipping is right.

    `first` is what any task of the sink has marked in its first batch: who has no marker goes by that.
    """
    if stored is None:
        return _at_the_beginning(offered, first)
    if offered.query in stored.formers:
        raise ReplayDiffers(
            f"query {offered.query} was taken over by another one, which has written since; go on with the checkpoint of that one"
        )
    _refuse_other_count(stored, offered)
    if stored.query == offered.query:
        return _in_the_same_query(stored, offered)
    return _in_another_query(stored, offered)


def _at_the_beginning(offered: Marker, first: Marker | None) -> Decision:
    if offered.batch != FIRST_BATCH:
        raise MarkerLost(
            f"batch {offered.batch} of query {offered.query} comes, and there is no trace of batch {offered.batch - 1}."
            " The topic that is written to was made anew, the option name is another one, or the query wrote without exactlyOnce before."
            " Look at what the topic holds, then begin with a new checkpoint and another"
            f" name{_at(_starts(offered.ranges))}"
        )
    if first is not None:
        _refuse_other_count(first, offered)
        goes_on = first.query != offered.query and _in_another_query(first, offered) is Decision.WRITE
        if goes_on and first.ranges is not None and _moved(first.ranges):
            raise ReplayDiffers(
                f"query {first.query} has written, and this task has nothing of it: what it should have written would be missing."
                " Use the checkpoint of that query, or choose another name"
            )
    return Decision.WRITE


def _refuse_other_count(stored: Marker, offered: Marker) -> None:
    if stored.tasks != offered.tasks:
        raise ReplayDiffers(
            f"batch {stored.batch} was written by {stored.tasks} tasks, and now there are {offered.tasks}: their number may not"
            f" change. Say tasks={stored.tasks}, or begin with a new checkpoint and another name{_at(_ends(stored.ranges))}"
        )


def _in_the_same_query(stored: Marker, offered: Marker) -> Decision:
    if offered.batch == stored.batch:
        return _replayed(stored, offered)
    if offered.batch == stored.batch + 1:
        _refuse_gap(stored, offered)
        return Decision.WRITE
    if offered.batch < stored.batch:
        raise ReplayDiffers(
            f"batch {offered.batch} comes again, and batch {stored.batch} is written already: this is an attempt that was given up"
            " long ago, or a checkpoint that was put back. Go on with the newest checkpoint of the query, or begin with a new"
            f" one{_at(_ends(stored.ranges))}"
        )
    raise ReplayDiffers(
        f"batch {offered.batch} comes, and the last that was written is {stored.batch}: what is between them is missing."
        f" Begin with a new checkpoint{_at(_ends(stored.ranges))}"
    )


def _in_another_query(stored: Marker, offered: Marker) -> Decision:
    if stored.query == NOBODY and stored.ranges is None:
        return Decision.WRITE  # this task never wrote anything
    if stored.ranges is None or offered.ranges is None:
        raise ReplayDiffers(
            f"the name belongs to query {stored.query}, which has written batch {stored.batch}, and this is query {offered.query}:"
            " nothing tells what both have read. Use the checkpoint of that query, or choose another name"
            f"{_at(_ends(stored.ranges))}"
        )
    is_same = _same(stored.ranges, offered.ranges) and not made_anew(stored.ids, offered.ids)
    if _moved(offered.ranges) and is_same:
        return _replayed(stored, offered)
    # Also where both have read nothing: a query's first batch comes whether or not there is something to read.
    _refuse_gap(stored, offered)
    return Decision.WRITE


def _replayed(stored: Marker, offered: Marker) -> Decision:
    if offered.digest is None:
        return Decision.READ_FIRST
    replaced = made_anew(stored.ids, offered.ids)
    if replaced:
        name = replaced[0]
        raise ReplayDiffers(
            f"batch {offered.batch} comes again, and topic {name} was deleted and made anew since: it was written from the one with the id"
            f" {stored.ids[name]}, and now reads {offered.ids[name]}. Begin with a new checkpoint and another name"
        )
    if offered.digest == stored.digest:
        return Decision.SKIP
    what = "reads other offsets" if offered.ranges is not None else "has other rows for this task"
    if offered.ranges is not None and stored.ranges is not None and _same(stored.ranges, offered.ranges):
        what = "is computed in another way"
    raise ReplayDiffers(
        f"batch {offered.batch} comes again and {what} than when it was written. A replay must bring the same rows to the same"
        " tasks: run the query once more as it was then, let it finish this batch, and change it afterwards; or begin with a new"
        f" checkpoint and another name{_at(_ends(stored.ranges))}"
    )


def _refuse_gap(before: Marker, following: Marker) -> None:
    """What came into being since may begin anywhere."""
    stored, offered = before.ranges, following.ranges
    if stored is None or offered is None:
        return
    replaced = made_anew(before.ids, following.ids)
    for partition in sorted(offered):
        if partition not in stored or partition.topic in replaced:
            continue
        start, end = max(offered[partition][0], 0), stored[partition][1]
        if start != end:
            verb = "twice" if start < end else "never"
            raise ReplayDiffers(
                f"{partition} is to be read from {start} on, and was written up to {end}: what lies between would be written"
                f" {verb}. Begin{_at(_ends(stored))}"
            )


def _same(one: Ranges, other: Ranges) -> bool:
    return _moved(one) == _moved(other)


def _moved(ranges: Ranges) -> Ranges:
    """Without partitions of which nothing is read, and with the place for "from the start" where that is."""
    return {
        partition: (max(start, 0), end) for partition, (start, end) in ranges.items() if end > max(start, 0)
    }


def _starts(ranges: Ranges | None) -> dict[TopicPartition, int] | None:
    return None if ranges is None else {each: max(start, 0) for each, (start, _) in ranges.items()}


def _ends(ranges: Ranges | None) -> dict[TopicPartition, int] | None:
    return None if ranges is None else {each: end for each, (_, end) in ranges.items()}


def _at(offsets: Mapping[TopicPartition, int] | None) -> str:
    """The end of a sentence that tells where to begin."""
    if offsets is None:
        return ", at offsets that you know to be right"
    return f", with startingOffsets={json.dumps(to_json(offsets), separators=(',', ':'))}"


def succeeding(stored: Marker | None, offered: Marker) -> Marker:
    """What is stored when the offered batch is written."""
    if stored is None:
        return offered
    formers = stored.formers
    if stored.query not in (offered.query, NOBODY):
        formers = (stored.query, *formers)[:FORMERS_MAX]
    return replace(offered, formers=formers)


def digest_of(ranges: Ranges, fingerprint: str = "") -> str:
    """`fingerprint` tells what is computed from the ranges: another one makes the same ranges another batch."""
    text = json.dumps([_written(_moved(ranges)), fingerprint], separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:32]


def to_text(marker: Marker) -> str:
    """As it is stored beside the offset."""
    assert marker.digest is not None, "a marker is stored when its rows have been seen"
    fields: dict[str, object] = {
        "query": marker.query,
        "batch": marker.batch,
        "tasks": marker.tasks,
        "digest": marker.digest,
    }
    if marker.formers:
        fields["formers"] = marker.formers
    if marker.ids:
        fields["ids"] = marker.ids
    if marker.ranges is None:
        return _compact(fields)
    written = _written(marker.ranges)
    text = _compact({**fields, "ranges": written})
    if len(text.encode()) > PLAIN_BYTES_MAX:
        packed = base64.b85encode(zlib.compress(_compact(written).encode(), 9)).decode()
        text = _compact({**fields, "packed": packed})
    return text if len(text.encode()) <= MARKER_BYTES_MAX else _compact(fields)


def from_text(text: str) -> Marker:
    """Refuses what no sink has written with `ReplayDiffers`."""
    try:
        fields = json.loads(text)
        written = fields.get("ranges")
        if "packed" in fields:
            written = json.loads(zlib.decompress(base64.b85decode(fields["packed"])))
        ranges = None if written is None else _read(written)
        return Marker(
            str(fields["query"]),
            int(fields["batch"]),
            int(fields["tasks"]),
            str(fields["digest"]),
            ranges,
            tuple(map(str, fields.get("formers", ()))),
            {str(name): str(id_) for name, id_ in fields.get("ids", {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
        raise ReplayDiffers(
            f"where a marker should be there is {text[:80]!r}: somebody else writes under the sink's name; choose another name"
        ) from None


def parse_ranges(text: str) -> Ranges:
    """From the option of that name."""
    try:
        written = json.loads(text)
        parsed = {
            TopicPartition(str(topic), int(index)): (int(start), int(end))
            for topic, partitions in written.items()
            if topic != IDS
            for index, (start, end) in partitions.items()
        }
    except (ValueError, TypeError, AttributeError):
        parsed = None
    if not parsed:
        raise WrongUse(f'ranges is {text[:80]!r}, must be JSON like {{"orders": {{"0": [23, 46]}}}}')
    return parsed


def parse_ids(text: str) -> TopicIds:
    """From the same option, which `parse_ranges` has taken: which topics the ranges are of, under `#ids`."""
    ids = json.loads(text).get(IDS, {})
    if not isinstance(ids, dict) or not all(isinstance(id_, str) for id_ in ids.values()):
        raise WrongUse(
            f'ranges: {IDS} is {str(ids)[:80]!r}, must be JSON like {{"orders": "vPeOCWypqUOSepEvx0cbog"}}'
        )
    return ids


def ranges_to_text(ranges: Ranges, ids: TopicIds | None = None) -> str:
    written: dict[str, dict[str, list[int] | str]] = {}
    for partition in sorted(ranges):
        written.setdefault(partition.topic, {})[str(partition.partition)] = list(ranges[partition])
    if ids:
        written[IDS] = dict(ids)
    return _compact(written)


def _written(ranges: Ranges) -> dict[str, list[list[int]]]:
    """By topic, of each partition its number, where it begins and how much is read: counts are shorter than ends."""
    written: dict[str, list[list[int]]] = {}
    for partition in sorted(ranges):
        start, end = ranges[partition]
        written.setdefault(partition.topic, []).append([partition.partition, start, end - start])
    return written


def _read(written: Mapping[str, list[list[int]]]) -> Ranges:
    return {
        TopicPartition(topic, index): (start, start + count)
        for topic, partitions in written.items()
        for index, start, count in partitions
    }


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
