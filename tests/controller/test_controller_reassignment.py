"""Moving replicas: what a move adds, when it is done, and giving it up."""

import pytest

from ropewalk.base.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    NoReassignment,
    RopewalkError,
    UnknownPartition,
    UnknownTopic,
)
from ropewalk.controller.reassignment import decide_reassign, moves
from tests.controller.imagined import NOW_MS, ImaginedCluster, alter, nodes


def move(
    cluster: ImaginedCluster,
    replicas: tuple[int, ...] | None,
    *,
    topic: str = "orders",
    index: int = 0,
    may_change_factor: bool = True,
) -> None:
    cluster.apply(
        decide_reassign(
            cluster.image,
            topic,
            index,
            None if replicas is None else nodes(*replicas),
            settings=cluster.settings,
            now_ms=NOW_MS,
            may_change_factor=may_change_factor,
        )
    )
    cluster.check()


def orders(*replicas: int) -> ImaginedCluster:
    cluster = ImaginedCluster(5)
    cluster.topic("orders", replicas)
    return cluster


def test_a_move_adds_first_and_is_done_when_the_newcomers_are_in_sync() -> None:
    cluster = orders(0, 1, 2)
    move(cluster, (3, 4, 2))
    partition = cluster.partition("orders")
    assert partition.replicas == (3, 4, 2, 0, 1)
    assert (partition.adding, partition.removing) == ((3, 4), (0, 1))
    assert cluster.seats("orders") == (0, (0, 1, 2), ())
    assert [(topic.name, found.index) for topic, found in moves(cluster.image)] == [("orders", 0)]
    alter(cluster, 0, (0, 1, 2, 3))
    assert cluster.partition("orders").is_moving
    after = alter(cluster, 0, (0, 1, 2, 3, 4))
    assert (after.replicas, after.adding, after.removing) == ((3, 4, 2), (), ())
    assert (after.leader, after.leader_epoch, set(after.isr)) == (3, 1, {2, 3, 4})
    assert not list(moves(cluster.image))


def test_a_move_is_not_done_while_too_few_of_those_who_stay_are_in_sync() -> None:
    cluster = orders(0, 1, 2)
    alter(cluster, 0, (0,))
    move(cluster, (3, 1, 2))
    alter(cluster, 0, (0, 3))
    assert cluster.partition("orders").is_moving
    assert cluster.seats("orders") == (0, (0, 3), ())
    alter(cluster, 0, (0, 1, 3))
    assert not cluster.partition("orders").is_moving
    assert cluster.seats("orders") == (3, (1, 3), ())


def test_a_higher_factor_asks_for_more_in_sync_only_when_it_is_reached() -> None:
    cluster = orders(0)
    topic = cluster.image.topic("orders")
    move(cluster, (0, 1, 2))
    assert cluster.settings.minimum_in_sync(topic, cluster.partition("orders")) == 1
    alter(cluster, 0, (0, 1))
    assert cluster.settings.minimum_in_sync(topic, cluster.partition("orders")) == 1
    alter(cluster, 0, (0, 1, 2))
    assert cluster.settings.minimum_in_sync(topic, cluster.partition("orders")) == 2


def test_fewer_replicas_take_effect_at_once_if_the_rest_are_in_sync() -> None:
    cluster = orders(0, 1, 2)
    move(cluster, (1,))
    assert cluster.partition("orders").replicas == (1,)
    assert cluster.seats("orders") == (1, (1,), ())


def test_another_order_is_no_election() -> None:
    cluster = orders(0, 1, 2)
    move(cluster, (2, 1, 0))
    partition = cluster.partition("orders")
    assert (partition.replicas, partition.leader, partition.leader_epoch) == ((2, 1, 0), 0, 0)
    move(cluster, (2, 1, 0))
    assert cluster.partition("orders") == partition


def test_a_move_that_is_given_up_leaves_the_replicas_that_were_there() -> None:
    cluster = orders(0, 1, 2)
    move(cluster, (3, 4, 2))
    alter(cluster, 0, (0, 1, 2, 3))
    move(cluster, None)
    partition = cluster.partition("orders")
    assert set(partition.replicas) == {0, 1, 2}
    assert not partition.is_moving
    assert cluster.seats("orders") == (0, (0, 1, 2), ())


def test_a_move_replaces_the_one_before_it() -> None:
    cluster = orders(0, 1, 2)
    move(cluster, (3, 1, 2))
    alter(cluster, 0, (0, 1))
    move(cluster, (4, 1, 2))
    partition = cluster.partition("orders")
    assert (partition.replicas, partition.adding, partition.removing) == ((4, 1, 2, 0), (4,), (0,))


def test_the_only_ones_who_hold_everything_are_not_moved_away() -> None:
    cluster = orders(0)
    move(cluster, (1, 0, 2))
    alter(cluster, 0, (0, 1))
    cluster.fence(0)
    assert cluster.seats("orders") == (1, (1,), ())
    for replicas in (None, (0, 2)):
        with pytest.raises(InvalidReplicaAssignment, match="cannot do without"):
            move(cluster, replicas)


@pytest.mark.parametrize(
    ("topic", "index", "replicas", "expected"),
    [
        pytest.param("orders", 0, None, NoReassignment, id="nothing to give up"),
        pytest.param("orders", 0, (9, 1), InvalidReplicaAssignment, id="no such broker"),
        pytest.param("orders", 0, (1, 1), InvalidReplicaAssignment, id="twice"),
        pytest.param("orders", 0, (), InvalidReplicaAssignment, id="nowhere"),
        pytest.param("orders", 0, (1,), InvalidReplicationFactor, id="fewer"),
        pytest.param("orders", 1, (1, 2), UnknownPartition, id="no such partition"),
        pytest.param("no", 0, (1, 2), UnknownTopic, id="no such topic"),
    ],
)
def test_reassignments_that_are_refused(
    topic: str, index: int, replicas: tuple[int, ...] | None, expected: type[RopewalkError]
) -> None:
    with pytest.raises(expected):
        move(orders(1, 2), replicas, topic=topic, index=index, may_change_factor=False)
