"""Which offsets the batches of a query cover, over all its sources.

What a reader could get wrong
    A topic that is read by two sources counts by the first: Spark makes each go on where it stopped, so that one tells the batch.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.checkpoints import batch_ends
from ropewalk.spark.ranges import FROM_THE_START, Offsets
from ropewalk.spark.sink.marker import Ranges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class BatchRanges:
    """Of one query, asked batch after batch; what it was told last it need not read again."""

    def __init__(self, checkpoint: str, beginning: Offsets) -> None:
        self._checkpoint = checkpoint
        self._beginning = beginning
        self._known: tuple[int, Offsets] | None = None

    def of(self, spark: "SparkSession", batch: int) -> Ranges:
        start = self._beginning if batch == 0 else self._ends(spark, batch - 1)
        end = self._ends(spark, batch)
        self._known = (batch, end)
        return ranges_between(start, end)

    def _ends(self, spark: "SparkSession", batch: int) -> Offsets:
        if self._known is not None and self._known[0] == batch:
            return self._known[1]
        return together(batch_ends(spark, self._checkpoint, batch))


def together(ends: Iterable[Offsets]) -> Offsets:
    """Of all sources, the first winning."""
    merged: Offsets = {}
    for each in ends:
        merged = {**each, **merged}
    return merged


def ranges_between(start: Mapping[TopicPartition, int], end: Offsets) -> Ranges:
    """What was not there at the start is read from where its log begins. Partitions of which nothing is read are named, too."""
    return {partition: (start.get(partition, FROM_THE_START), offset) for partition, offset in end.items()}
