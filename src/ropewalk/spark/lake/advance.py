"""Core: which offsets of a batch are new to a table, and where the table stands after it.

Invariants
    Each offset that any batch has covered is taken exactly once, however often batches are replayed and whatever their bounds are by then.
    The table never moves past an offset that no batch has covered.

What a reader could get wrong
    The *range* that Spark asked for is compared with what is stored, never the first record: offsets that compaction or an aborted
    transaction left empty are normal inside a range.
    A range that is `FROM_THE_START` begins wherever the log did; nothing can lie before it.
    A partition without records is stored too, as soon as a batch names it: what it begins with later is then known to be next.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.ranges import FROM_THE_START, Offsets, Range
from ropewalk.spark.refusals import DataLost


class Advance(Struct, frozen=True):
    ranges: list[Range]
    """What is to be read, and taken whole: what lies below is in the table already."""
    next_offsets: Offsets
    """Where the table stands afterwards; only what moves."""


def decide_advance(stored: Mapping[TopicPartition, int], ranges: Iterable[Range]) -> Advance:
    """Raises `DataLost` if the batch begins behind what the table has: offsets in between would be missing for good."""
    new: list[Range] = []
    next_offsets: Offsets = {}
    for each in ranges:
        reached = stored.get(each.partition)
        if each.start != FROM_THE_START and each.start > (reached or 0):
            raise DataLost(_gap(each, reached))
        if reached is None or each.end > reached:
            next_offsets[each.partition] = each.end
            first = replace(each, start=reached or each.start)
            if first.count:
                new.append(first)
    return Advance(new, next_offsets)


def _gap(range_: Range, reached: int | None) -> str:
    has = "has heard nothing of it yet" if reached is None else f"ends at {reached}"
    return (
        f"the batch begins at offset {range_.start} of {range_.partition}, and the table {has}:"
        f" {range_.start - (reached or 0)} offsets would be missing. The checkpoint belongs to another table, or is ahead of this one;"
        " give the job a new checkpoint directory, and it goes on where the table ends"
    )
