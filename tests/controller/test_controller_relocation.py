"""Draining a broker, replacing one, and raising the cluster's own topics."""

import pytest

from ropewalk.base.errors import InvalidReplicaAssignment, UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.controller.membership import decide_remove_broker, decide_stop_broker
from ropewalk.controller.reassignment import decide_reassign, decide_set_observers, moves
from ropewalk.controller.relocation import decide_drain_broker, decide_raise_internal_topics, held_count
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC
from tests.controller.imagined import NOW_MS, ImaginedCluster, alter, nodes


def finish_moves(cluster: ImaginedCluster) -> int:
    """Newcomers catch up; how many moves that completes."""
    found = list(moves(cluster.image))
    for topic, partition in found:
        assert partition.leader is not None
        isr = tuple(sorted({*partition.isr, *partition.adding}))
        alter(cluster, partition.leader, isr, topic=topic.name, index=partition.index)
    cluster.check()
    return len(found)


def drain(cluster: ImaginedCluster, number: int, *, moves_max: int = 2, onto: int | None = None) -> None:
    cluster.apply(
        decide_drain_broker(
            cluster.image,
            NodeId(number),
            settings=cluster.settings,
            now_ms=NOW_MS,
            moves_max=moves_max,
            onto=None if onto is None else NodeId(onto),
        )
    )


def test_a_broker_is_drained_a_few_partitions_at_a_time_and_can_then_be_taken_away() -> None:
    cluster = ImaginedCluster(4)
    cluster.topic("orders", (0, 1, 2), (1, 0, 3), (2, 3, 0), (0, 2), (1, 2, 3))
    steps = []
    while held_count(cluster.image, NodeId(0)):
        drain(cluster, 0)
        steps.append(finish_moves(cluster))
    assert steps == [2, 2]
    for index, factor in enumerate((3, 3, 3, 2, 3)):
        partition = cluster.partition("orders", index)
        assert len(partition.replicas) == factor
        assert partition.leader != 0
    drain(cluster, 0)
    assert not list(moves(cluster.image))
    cluster.apply(decide_stop_broker(cluster.image, NodeId(0), settings=cluster.settings, now_ms=NOW_MS))
    cluster.apply(decide_remove_broker(cluster.image, NodeId(0)))
    cluster.check()


def test_no_more_moves_are_begun_than_may_be_under_way() -> None:
    cluster = ImaginedCluster(4)
    cluster.topic("orders", *[(0, 1, 2)] * 4)
    drain(cluster, 0, moves_max=3)
    drain(cluster, 0, moves_max=3)
    assert len(list(moves(cluster.image))) == 3


def test_a_broker_without_whom_there_are_too_few_is_not_drained() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (0, 1), (0, 1, 2))
    with pytest.raises(
        InvalidReplicaAssignment, match=r"orders-1 is on \[0, 1, 2\] and there is no other broker"
    ):
        drain(cluster, 0)
    with pytest.raises(UnknownBroker):
        drain(cluster, 9)


def test_a_broker_is_replaced_by_another() -> None:
    cluster = ImaginedCluster(4)
    cluster.topic("orders", (0, 1, 2), (1, 2, 0))
    cluster.fence(0)
    drain(cluster, 0, onto=3)
    finish_moves(cluster)
    assert [cluster.partition("orders", index).replicas for index in (0, 1)] == [(3, 1, 2), (1, 2, 3)]


def test_new_homes_are_in_other_racks_and_hold_the_least() -> None:
    cluster = ImaginedCluster()
    for number, rack in enumerate("aabbcc"):
        cluster.join(number, rack=rack)
    cluster.topic("idle", (4, 0))
    cluster.topic("orders", (0, 2))
    drain(cluster, 0, moves_max=9)
    finish_moves(cluster)
    assert cluster.partition("orders").replicas == (5, 2)
    assert cluster.partition("idle").replicas in ((4, 1), (4, 3), (4, 2))


def test_an_observer_is_drained_and_can_be_promoted() -> None:
    cluster = ImaginedCluster(4)
    cluster.topic("orders", (0, 1))
    cluster.apply(
        decide_set_observers(cluster.image, "orders", 0, nodes(2), settings=cluster.settings, now_ms=NOW_MS)
    )
    drain(cluster, 2)
    assert cluster.partition("orders").observers == (3,)
    cluster.apply(
        decide_reassign(cluster.image, "orders", 0, nodes(0, 3), settings=cluster.settings, now_ms=NOW_MS)
    )
    partition = cluster.partition("orders")
    assert (partition.observers, partition.adding, partition.removing) == ((), (3,), (1,))
    finish_moves(cluster)
    assert cluster.seats("orders") == (0, (0, 3), ())


@pytest.mark.parametrize("observers", [(0,), (2, 2), (9,)])
def test_observers_that_cannot_be(observers: tuple[int, ...]) -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (0, 1))
    with pytest.raises(InvalidReplicaAssignment):
        decide_set_observers(
            cluster.image, "orders", 0, nodes(*observers), settings=cluster.settings, now_ms=NOW_MS
        )


def raise_internal(cluster: ImaginedCluster) -> None:
    cluster.apply(
        decide_raise_internal_topics(cluster.image, settings=cluster.settings, now_ms=NOW_MS, moves_max=10)
    )


def test_the_clusters_own_topics_are_raised_as_brokers_join() -> None:
    cluster = ImaginedCluster(1)
    cluster.topic(OFFSETS_TOPIC, (0,), (0,))
    cluster.topic("orders", (0,))
    for number, expected in ((1, 2), (2, 3), (3, 3)):
        cluster.join(number)
        raise_internal(cluster)
        finish_moves(cluster)
        for index in (0, 1):
            assert len(cluster.partition(OFFSETS_TOPIC, index).isr) == expected
    assert cluster.partition("orders").replicas == (0,)


def test_the_clusters_own_topics_have_no_more_copies_than_was_configured() -> None:
    cluster = ImaginedCluster(3, {"offsets.topic.replication.factor": "2"})
    cluster.topic(OFFSETS_TOPIC, (0,))
    raise_internal(cluster)
    finish_moves(cluster)
    assert cluster.partition(OFFSETS_TOPIC).replicas == (0, 1)
