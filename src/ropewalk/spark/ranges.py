"""Which offsets a read comes to, and how they are split into tasks. Numbers in, numbers out: nobody is asked anything.

A stream's progress is written down by Spark as JSON, `{"topic": {"partition": offset}}`, and read back after a restart;
the same start and end must come to the same tasks then, whoever leads what by that time. Beside the topics stands under `#ids` which topic
each name meant: `{"orders": {"0": 23}, "#ids": {"orders": "vPeOCWypqUOSepEvx0cbog"}}`. Offsets of a topic mean nothing in another one that
was made later under the same name.

What a reader could get wrong
    Progress that was written before ids were, or of brokers that have none, has no `#ids`: such a topic is its name, and is taken over as it is.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.base.ids import TopicPartition

Offsets: TypeAlias = dict[TopicPartition, int]
TopicIds: TypeAlias = dict[str, str]
"""By name, as Kafka's tools print them."""
Json: TypeAlias = dict[str, dict[str, int | str]]

IDS: Final = "#ids"
"""Among the topics of a progress: their ids. No topic can have such a name."""

EVER: Final = (-(2**63), 2**63 - 1)
"""First and end of offsets or timestamps that leave nothing out; the end is not included."""

FROM_THE_START: Final = -2
"""Where a partition that came into being during a stream is read from: wherever its log begins by then."""


class Range(Struct, frozen=True):
    """`end` is not included; `start` may be `FROM_THE_START`."""

    partition: TopicPartition
    start: int
    end: int
    topic_id: str | None = None
    """Of the topic that these are offsets of; None where that is not known."""

    @property
    def count(self) -> int:
        return max(0, self.end - max(self.start, 0))


class Progress(Struct, frozen=True):
    """How far something has come, and in which topics."""

    offsets: Offsets
    ids: TopicIds = {}

    def without(self, topics: Collection[str]) -> "Progress":
        return Progress(
            {each: offset for each, offset in self.offsets.items() if each.topic not in topics},
            {name: id_ for name, id_ in self.ids.items() if name not in topics},
        )

    def moved(self, offsets: Offsets, ids: TopicIds) -> "Progress":
        """With these in place of its own. Of a topic that was made anew nothing else stays."""
        kept = self.without(made_anew(self.ids, ids))
        return Progress({**kept.offsets, **offsets}, {**kept.ids, **ids})

    def to_json(self) -> Json:
        return to_json(self.offsets, self.ids)


def to_json(offsets: Mapping[TopicPartition, int], ids: Mapping[str, str] | None = None) -> Json:
    written: Json = {}
    for partition in sorted(offsets):
        written.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    known = {name: id_ for name, id_ in sorted((ids or {}).items()) if name in written}
    return {**written, IDS: dict(known)} if known else written


def progress_in(written: Mapping[str, Mapping[str, int | str]]) -> Progress:
    return Progress(from_json(written), {name: str(id_) for name, id_ in written.get(IDS, {}).items()})


def from_json(written: Mapping[str, Mapping[str, int | str]]) -> Offsets:
    return {
        TopicPartition(topic, int(index)): int(offset)
        for topic, partitions in written.items()
        if topic != IDS
        for index, offset in partitions.items()
    }


def made_anew(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Names that mean another topic afterwards, as far as both ids are known."""
    return sorted(name for name, id_ in after.items() if before.get(name, id_) != id_)


def between(start: Progress, end: Progress) -> list[Range]:
    """What is in `end` and not in `start` came into being in between. What is in `start` alone is gone. A topic that was made anew is read
    from its start."""
    ranges = all_between(start, end)
    return [each for each in ranges if each.end > max(each.start, 0)]


def all_between(start: Progress, end: Progress) -> list[Range]:
    """The same, with the partitions that nothing came to."""
    known = start.without(made_anew(start.ids, end.ids)).offsets
    return [
        Range(partition, known.get(partition, FROM_THE_START), offset, end.ids.get(partition.topic))
        for partition, offset in sorted(end.offsets.items())
    ]


def split(ranges: Iterable[Range], count_min: int | None, *, records_max: int | None = None) -> list[Range]:
    """At least `count_min` ranges where there are as many offsets, the longer ones in more pieces; none of more than `records_max`.

    What begins wherever the log does stays whole: a piece of it could lie before the log's start, and would be taken for a loss.
    """
    whole = list(ranges)
    total = sum(each.count for each in whole)
    piece_counts = [1 if records_max is None else max(1, -(-each.count // records_max)) for each in whole]
    if count_min is not None and total and sum(piece_counts) < count_min:
        shares = [min(each.count, round(count_min * each.count / total)) for each in whole]
        piece_counts = [max(pair) for pair in zip(piece_counts, shares, strict=True)]
    pieces: list[Range] = []
    for each, piece_count in zip(whole, piece_counts, strict=True):
        if piece_count == 1 or each.start == FROM_THE_START:
            pieces.append(each)
            continue
        first = max(each.start, 0)
        bounds = [first + each.count * number // piece_count for number in range(piece_count + 1)]
        starts = [each.start, *bounds[1:-1]]
        pieces += [
            Range(each.partition, begin, stop, each.topic_id)
            for begin, stop in zip(starts, bounds[1:], strict=True)
        ]
    return pieces


def limited(start: Offsets, available: Offsets, count_max: int) -> Offsets:
    """As much of what is available as may be read at once, each partition in proportion to what it has.

    One record at least of each that has any, even if that is more than was asked for, as in Spark's own source: beside one that always
    has much more, a small share would be nothing for as long as that goes on.
    """
    waiting = {
        partition: max(0, end - max(0, start.get(partition, 0))) for partition, end in available.items()
    }
    total = sum(waiting.values())
    if total <= count_max:
        return dict(available)
    reached: Offsets = {}
    for partition, count in waiting.items():
        begin = max(0, start.get(partition, 0))
        share = max(min(count, 1), count * count_max // total)
        reached[partition] = begin + share
    left = count_max - sum(reached[each] - max(0, start.get(each, 0)) for each in reached)
    for partition in sorted(waiting, key=lambda each: (-waiting[each], each)):
        if left <= 0:
            break
        more = min(left, available[partition] - reached[partition], 1)
        reached[partition] += more
        left -= more
    return reached
