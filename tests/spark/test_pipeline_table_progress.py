"""A table has a batch once: told by the next offsets and the count of batches that its commits leave behind."""

import pytest

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.pipelines.table_progress import is_new, moved
from ropewalk.spark.refusals import ReplayDiffers
from ropewalk.spark.sink.marker import Ranges

ORDERS = TopicPartition("orders", 0)
FIRST: Ranges = {ORDERS: (-2, 10)}
SECOND: Ranges = {ORDERS: (10, 25)}
NOTHING: Ranges = {ORDERS: (25, 25)}


def test_batches_follow_each_other_and_come_again_in_vain() -> None:
    stored: dict[TopicPartition, int] = {}
    for number, ranges in enumerate([FIRST, SECOND, NOTHING]):
        assert is_new(stored, "q", number, ranges)
        stored |= moved("q", number, ranges)
        assert not is_new(stored, "q", number, ranges)
    assert stored[ORDERS] == 25


def test_another_query_goes_on_where_the_table_ends() -> None:
    stored = moved("q", 7, SECOND)
    assert is_new(stored, "another", 0, NOTHING)
    with pytest.raises(
        ReplayDiffers, match="orders-0 is to be read from 10 on, and the table has it up to 25"
    ):
        is_new(stored, "another", 0, SECOND)


def test_what_lies_between_is_not_left_out() -> None:
    for number, stored in ((2, moved("q", 0, FIRST)), (0, moved("q", 4, FIRST)), (1, {})):
        with pytest.raises(ReplayDiffers, match=f"batch {number} comes"):
            is_new(stored, "q", number, SECOND)
