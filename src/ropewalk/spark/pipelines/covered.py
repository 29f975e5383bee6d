"""Which offsets the batches of a query cover, over all its sources.

What a reader could get wrong
    A topic that is read by two sources counts by the first: Spark makes each go on where it stopped, so that one tells the batch.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ropewalk.spark.checkpoints import batch_ends
from ropewalk.spark.ranges import Progress, TopicIds, all_between
from ropewalk.spark.sink.marker import Ranges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Covered(NamedTuple):
    ranges: Ranges
    topic_ids: TopicIds


class BatchRanges:
    """Of one query, asked batch after batch; what it was told last it need not read again."""

    def __init__(self, checkpoint: str, beginning: Progress) -> None:
        self._checkpoint = checkpoint
        self._beginning = beginning
        self._known: tuple[int, Progress] | None = None

    def of(self, spark: "SparkSession", batch: int) -> "Covered":
        start = self._beginning if batch == 0 else self._ends(spark, batch - 1)
        end = self._ends(spark, batch)
        self._known = (batch, end)
        return Covered(ranges_between(start, end), end.ids)

    def _ends(self, spark: "SparkSession", batch: int) -> Progress:
        if self._known is not None and self._known[0] == batch:
            return self._known[1]
        return together(batch_ends(spark, self._checkpoint, batch))


def together(ends: Iterable[Progress]) -> Progress:
    """Of all sources, the first winning."""
    merged = Progress({})
    for each in ends:
        merged = Progress({**each.offsets, **merged.offsets}, {**each.ids, **merged.ids})
    return merged


def ranges_between(start: Progress, end: Progress) -> Ranges:
    """What was not there at the start is read from where its log begins. Partitions of which nothing is read are named, too."""
    return {each.partition: (each.start, each.end) for each in all_between(start, end)}
