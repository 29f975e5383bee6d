"""What Spark's pages call the jobs of a batch."""

import pytest

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.job_names import PARTITIONS_MAX, described

FIRST, SECOND = TopicPartition("sales", 0), TopicPartition("sales", 1)


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ({SECOND: (90, 150), FIRST: (-2, 200)}, "orders: batch 7, sales-0 0 to 200, sales-1 90 to 150"),
        ({FIRST: (5, 5), SECOND: (1, 2)}, "orders: batch 7, sales-1 1 to 2"),
        ({FIRST: (5, 5)}, "orders: batch 7, no offsets"),
    ],
)
def test_a_job_is_called_by_its_pipeline_batch_and_offsets(
    ranges: dict[TopicPartition, tuple[int, int]], text: str
) -> None:
    assert described("orders", 7, ranges) == text


def test_many_partitions_are_not_all_named() -> None:
    many = {TopicPartition("sales", index): (0, 1) for index in range(PARTITIONS_MAX + 3)}
    assert described("orders", 7, many).endswith("sales-7 0 to 1, and 3 more")
