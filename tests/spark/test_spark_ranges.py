"""How much of what is there a batch takes of each partition."""

import pytest

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.ranges import FROM_THE_START, Range, limited, split
from ropewalk.spark.weights import PIECE_BYTES_MIN, UNKNOWN_BYTES, Weights, cut, within_bytes

MUCH, LITTLE, NONE = (TopicPartition("orders", index) for index in range(3))


def test_each_partition_gets_its_share() -> None:
    start = {MUCH: 100, LITTLE: 0, NONE: 7}
    assert limited(start, {MUCH: 400, LITTLE: 100, NONE: 7}, 40) == {MUCH: 130, LITTLE: 10, NONE: 7}
    assert limited(start, {MUCH: 400, LITTLE: 100, NONE: 7}, 400) == {MUCH: 400, LITTLE: 100, NONE: 7}


def test_a_partition_is_not_forgotten_beside_one_that_has_much_more() -> None:
    reached = {MUCH: 0, LITTLE: 0, NONE: 7}
    available = {MUCH: 10_000, LITTLE: 3, NONE: 7}
    for _ in range(3):
        reached = limited(reached, available, 10)
        available[MUCH] += 1_000_000
    assert reached[LITTLE] == 3
    assert reached[NONE] == 7


def test_bytes_are_shared_in_proportion_to_what_partitions_have() -> None:
    weights = Weights.of({MUCH: 4_000, LITTLE: 4_000}, {MUCH: 0, LITTLE: 10}, {MUCH: 400, LITTLE: 50})
    assert weights.bytes_per_offset == {MUCH: 10.0, LITTLE: 100.0}
    start, available = {MUCH: 100, NONE: 7}, {MUCH: 400, LITTLE: 50, NONE: 7}
    assert within_bytes(start, available, weights, 8_000) == available
    assert within_bytes(start, available, weights, 4_000) == {MUCH: 250, LITTLE: 25, NONE: 7}
    assert within_bytes(start, available, weights, 1) == {MUCH: 101, LITTLE: 1, NONE: 7}


def test_what_brokers_do_not_speak_of_is_guessed() -> None:
    assert Weights.of({}, {MUCH: 0}, {MUCH: 9}).weigh(MUCH, 3) == 3 * UNKNOWN_BYTES
    assert Weights.of({MUCH: 0}, {MUCH: 9}, {MUCH: 9}).weigh(MUCH, 1) == UNKNOWN_BYTES


def test_pieces_are_alike_in_bytes_and_none_is_small() -> None:
    weights = Weights({MUCH: float(PIECE_BYTES_MIN), LITTLE: PIECE_BYTES_MIN / 4})
    ranges = [Range(MUCH, 10, 16), Range(LITTLE, 0, 8), Range(NONE, 5, 6)]
    found = [(each.partition, each.start, each.end) for each in cut(ranges, weights, 4)]
    assert found == [(MUCH, 10, 12), (MUCH, 12, 14), (MUCH, 14, 16), (LITTLE, 0, 8), (NONE, 5, 6)]
    assert len(cut(ranges, weights, 1_000)) == 9
    late = [Range(MUCH, FROM_THE_START, 100)]
    assert cut(late, weights, 4) == late


@pytest.mark.parametrize(
    ("counts", "count_min", "records_max", "expected"),
    [
        ((10,), None, None, [(0, 10)]),
        ((10,), None, 4, [(0, 3), (3, 6), (6, 10)]),
        ((10, 2), None, 5, [(0, 5), (5, 10), (0, 2)]),
        ((10, 2), 4, 20, [(0, 3), (3, 6), (6, 10), (0, 2)]),
        ((10,), 2, 3, [(0, 2), (2, 5), (5, 7), (7, 10)]),
        ((), 4, 4, []),
    ],
)
def test_ranges_are_split_by_number_and_by_size(
    counts: tuple[int, ...], count_min: int | None, records_max: int | None, expected: list[tuple[int, int]]
) -> None:
    ranges = [Range(TopicPartition("orders", index), 0, count) for index, count in enumerate(counts)]
    pieces = split(ranges, count_min, records_max=records_max)
    assert [(each.start, each.end) for each in pieces] == expected


def test_what_begins_wherever_the_log_does_is_not_cut() -> None:
    """Its log may begin behind the first pieces; their tasks would take that for a loss."""
    newcomer = Range(MUCH, FROM_THE_START, 5000)
    assert split([newcomer], 4, records_max=100) == [newcomer]
