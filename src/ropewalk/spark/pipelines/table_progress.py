"""Whether a table has a batch already. A core.

A table is written by one commit for each batch, so there are no halves: the commit that holds the rows of a batch also moves the
next offset of every partition, and counts the batches of the query.

What a reader could get wrong
    Offsets alone do not tell a batch: a window ends when time has passed, in a batch that reads nothing.
    A query that lost its checkpoint has another name and counts from 0. It is known by where it begins.
"""

from collections.abc import Mapping

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.ranges import Offsets
from ropewalk.spark.refusals import ReplayDiffers
from ropewalk.spark.sink.marker import Ranges


def counter(query: str) -> TopicPartition:
    """Under which a table keeps how many batches of a query it has, beside the next offsets of partitions."""
    return TopicPartition(f"query-{query}", 0)


def is_new(stored: Mapping[TopicPartition, int], query: str, number: int, ranges: Ranges) -> bool:
    """Raises `ReplayDiffers` if the batch neither is in the table nor comes next."""
    batch_count = stored.get(counter(query))
    if batch_count == number + 1:
        return False
    if batch_count != (number or None):
        raise ReplayDiffers(
            f"batch {number} comes, and the table has {batch_count or 'none'} of the query's batches: it was made anew, or the"
            " checkpoint was put back. Go on with the newest checkpoint, or start over with another name and another table"
        )
    for partition, (start, _) in sorted(ranges.items()):
        reached = stored.get(partition)
        if reached is not None and reached != max(start, 0):
            raise ReplayDiffers(
                f"{partition} is to be read from {max(start, 0)} on, and the table has it up to {reached}. Remove the checkpoint, and"
                " a query that takes every row for itself goes on there"
            )
    return True


def moved(query: str, number: int, ranges: Ranges) -> Offsets:
    """What the commit of the batch leaves behind."""
    return {**{partition: end for partition, (_, end) in ranges.items()}, counter(query): number + 1}
