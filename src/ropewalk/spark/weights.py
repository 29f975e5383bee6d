"""How large ranges of offsets are, as far as brokers can say: what a partition takes in the log, spread evenly over its offsets.

What a reader could get wrong
    It is an estimate, in bytes as they are in the log and cross the network; what is compressed becomes more in memory. It decides how much a
    batch takes and how many tasks share it, never which records are read.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.ranges import FROM_THE_START, Offsets, Range

UNKNOWN_BYTES: Final = 1024
"""Taken for an offset where no broker says what a partition takes."""

PIECE_BYTES_MIN: Final = 8 << 20
"""A range is not cut into pieces below this: each is a task with a connection and a file of its own."""


class Weights(Struct, frozen=True):
    bytes_per_offset: dict[TopicPartition, float] = {}

    @classmethod
    def of(cls, sizes: Mapping[TopicPartition, int], first: Offsets, end: Offsets) -> "Weights":
        """`first` and `end` of the logs that the sizes are of."""
        known = {each: end[each] - first[each] for each in sizes if each in first and each in end}
        return cls({each: max(1.0, sizes[each] / count) for each, count in known.items() if count > 0})

    def weigh(self, partition: TopicPartition, count: int) -> float:
        return count * self.bytes_per_offset.get(partition, UNKNOWN_BYTES)


def within_bytes(start: Offsets, available: Offsets, weights: Weights, bytes_max: int) -> Offsets:
    """As much of what is available as has so many bytes, each partition in proportion to what it has; one offset at least of each."""
    counts = {each: max(0, end - max(0, start.get(each, 0))) for each, end in available.items()}
    total = sum(weights.weigh(each, count) for each, count in counts.items())
    if total <= bytes_max:
        return dict(available)
    return {
        each: available[each] - count + max(min(count, 1), int(count * bytes_max / total))
        for each, count in counts.items()
    }


def cut(ranges: Iterable[Range], weights: Weights, count_min: int) -> list[Range]:
    """At least so many pieces, about equally large, where there is enough for them. What begins wherever the log does stays whole."""
    whole = list(ranges)
    total = sum(weights.weigh(each.partition, each.count) for each in whole)
    piece_bytes = max(PIECE_BYTES_MIN, total / count_min)
    pieces: list[Range] = []
    for each in whole:
        wanted = -(-weights.weigh(each.partition, each.count) // piece_bytes)
        count = 1 if each.start == FROM_THE_START else max(1, min(each.count, int(wanted)))
        first = max(each.start, 0)
        bounds = [each.start, *(first + each.count * number // count for number in range(1, count)), each.end]
        pieces += [replace(each, start=begin, end=stop) for begin, stop in pairwise(bounds)]
    return pieces
