"""What Spark's pages call the jobs of a batch: the pipeline, the batch and its offsets, in place of a line of code.

What a reader could get wrong
    The group of a job is left as it is: by that Spark stops the jobs of a query.
    Behind a Connect server there is nothing to be named by us.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ropewalk.base.ids import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS_MAX: Final = 8
"""Named one by one. The text stands in every line of a list."""


def name_jobs(
    spark: "SparkSession", pipeline: str, batch: int, ranges: Mapping[TopicPartition, tuple[int, int]]
) -> None:
    """From here on, in this thread, until Spark begins the next batch."""
    if is_remote(spark):
        return
    spark.sparkContext.setJobDescription(described(pipeline, batch, ranges))


def described(pipeline: str, batch: int, ranges: Mapping[TopicPartition, tuple[int, int]]) -> str:
    """`orders: batch 7, sales-0 100 to 200, sales-1 90 to 150`; the ends are not included."""
    moved = [
        f"{each} {max(start, 0)} to {end}"
        for each, (start, end) in sorted(ranges.items())
        if end > max(start, 0)
    ]
    more = len(moved) - PARTITIONS_MAX
    told = moved[:PARTITIONS_MAX] + ([f"and {more} more"] if more > 0 else [])
    return f"{pipeline}: batch {batch}, {', '.join(told) or 'no offsets'}"


def is_remote(spark: "SparkSession") -> bool:
    """Whether it is behind a Connect server. Told by the module's name, because the module itself needs packages that nobody else does."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
