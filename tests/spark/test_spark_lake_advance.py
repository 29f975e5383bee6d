"""Which offsets of a batch are new to a table: replays with any bounds take each offset once."""

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.lake.advance import decide_advance
from ropewalk.spark.ranges import FROM_THE_START, Offsets, Range
from ropewalk.spark.refusals import DataLost

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


@pytest.mark.parametrize(
    ("stored", "ranges", "new", "next_"),
    [
        ({}, [Range(A, 0, 5)], [Range(A, 0, 5)], {A: 5}),
        ({}, [Range(A, FROM_THE_START, 705)], [Range(A, FROM_THE_START, 705)], {A: 705}),
        ({}, [Range(A, FROM_THE_START, 0)], [], {A: 0}),
        ({A: 700}, [Range(A, 700, 700)], [], {}),
        (
            {A: 5},
            [Range(A, 5, 9), Range(B, FROM_THE_START, 3)],
            [Range(A, 5, 9), Range(B, FROM_THE_START, 3)],
            {A: 9, B: 3},
        ),
        ({A: 7}, [Range(A, 0, 9)], [Range(A, 7, 9)], {A: 9}),
        ({A: 9}, [Range(A, 0, 9)], [], {}),
        ({A: 9}, [Range(A, 0, 4)], [], {}),
        ({A: 9, B: 2}, [Range(A, 0, 4), Range(B, 2, 3)], [Range(B, 2, 3)], {B: 3}),
        ({B: 4}, [Range(B, FROM_THE_START, 6)], [Range(B, 4, 6)], {B: 6}),
        ({B: 0}, [Range(B, FROM_THE_START, 6)], [Range(B, FROM_THE_START, 6)], {B: 6}),
        ({A: 9}, [], [], {}),
    ],
)
def test_what_is_stored_is_not_read_again(
    stored: Offsets, ranges: list[Range], new: list[Range], next_: Offsets
) -> None:
    advance = decide_advance(stored, ranges)
    assert (advance.ranges, advance.next_offsets) == (new, next_)


def test_a_batch_that_begins_behind_the_table_is_refused_as_a_whole() -> None:
    with pytest.raises(
        DataLost, match=r"begins at offset 6 of a-0, and the table ends at 5: 1 offsets"
    ) as raised:
        decide_advance({A: 5, B: 0}, [Range(B, 0, 9), Range(A, 6, 9)])
    assert "new checkpoint directory" in str(raised.value)


def test_a_checkpoint_without_its_table_is_refused() -> None:
    with pytest.raises(DataLost, match="offset 6 of a-0, and the table has heard nothing of it yet"):
        decide_advance({}, [Range(A, 6, 9)])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.booleans()), max_size=30))
def test_any_replays_with_any_bounds_take_each_offset_once(attempts: list[tuple[int, int, bool]]) -> None:
    """A batch may begin anywhere up to the table's end, cover anything, and die before its commit."""
    stored: Offsets = {}
    taken: list[int] = []
    for start, count, dies in attempts:
        range_ = Range(A, start, start + count)
        if stored.get(A) is None and start:
            range_ = Range(A, FROM_THE_START, start + count)
        try:
            advance = decide_advance(stored, [range_])
        except DataLost:
            assert start > stored[A]
            continue
        assert range_.start <= stored.get(A, 0)
        if dies:
            continue
        for new in advance.ranges:
            taken += range(max(0, new.start), new.end)
        stored |= advance.next_offsets
    assert taken == list(range(stored.get(A, 0)))
