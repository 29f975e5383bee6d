"""Which offsets a read comes to, and how they are split into tasks. Numbers in, numbers out: nobody is asked anything.

A stream's progress is written down by Spark as JSON, `{"topic": {"partition": offset}}`, and read back after a restart;
the same start and end must come to the same tasks then, whoever leads what by that time.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.base.ids import TopicPartition

Offsets: TypeAlias = dict[TopicPartition, int]
Json: TypeAlias = dict[str, dict[str, int]]

EVER: Final = (-(2**63), 2**63 - 1)
"""First and end of offsets or timestamps that leave nothing out; the end is not included."""

FROM_THE_START: Final = -2
"""Where a partition that came into being during a stream is read from: wherever its log begins by then."""


class Range(Struct, frozen=True):
    """`end` is not included; `start` may be `FROM_THE_START`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def count(self) -> int:
        return max(0, self.end - max(self.start, 0))


def to_json(offsets: Mapping[TopicPartition, int]) -> Json:
    written: Json = {}
    for partition in sorted(offsets):
        written.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return written


def from_json(written: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(index)): offset
        for topic, partitions in written.items()
        for index, offset in partitions.items()
    }


def between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[Range]:
    """What is in `end` and not in `start` came into being in between. What is in `start` alone is gone."""
    ranges = [
        Range(partition, start.get(partition, FROM_THE_START), offset)
        for partition, offset in sorted(end.items())
    ]
    return [each for each in ranges if each.end > max(each.start, 0)]


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
        pieces += [Range(each.partition, begin, stop) for begin, stop in zip(starts, bounds[1:], strict=True)]
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
