"""Lag as a table: what is known, what is not, and how it adds up."""

import pytest

from ropewalk.base.ids import Offset
from ropewalk.broker.watching.group_lag import PartitionLag, TopicLag, topic_lags


def lag(topic: str, partition: int, offset: int, behind: int | None) -> PartitionLag:
    return PartitionLag(topic, partition, Offset(offset), behind)


@pytest.mark.parametrize(
    ("lags", "expected"),
    [
        ([], []),
        ([lag("t", 0, 5, 3)], [TopicLag("t", 1, 5, 3, 3, 0)]),
        ([lag("t", 0, 5, 0), lag("t", 1, 7, 0)], [TopicLag("t", 2, 12, 0, 0, 0)]),
        ([lag("t", 2, 5, 4), lag("t", 1, 7, 4), lag("t", 0, 1, 1)], [TopicLag("t", 3, 13, 9, 4, 1)]),
        ([lag("t", 0, 5, None), lag("t", 1, 7, 2)], [TopicLag("t", 2, 12, 2, 2, 1)]),
        ([lag("t", 0, 5, None)], [TopicLag("t", 1, 5, 0, 0, -1)]),
        (
            [lag("u", 0, 1, 1), lag("t", 0, 2, 2)],
            [TopicLag("t", 1, 2, 2, 2, 0), TopicLag("u", 1, 1, 1, 1, 0)],
        ),
    ],
)
def test_partitions_add_up_to_topics(lags: list[PartitionLag], expected: list[TopicLag]) -> None:
    assert topic_lags(lags) == expected
