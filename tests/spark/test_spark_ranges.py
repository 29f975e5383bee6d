"""How much of what is there a batch takes of each partition."""

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.ranges import limited

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
