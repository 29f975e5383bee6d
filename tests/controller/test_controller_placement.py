"""Placement: even, over racks, and the same for the same draw."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ropewalk.base.errors import InvalidReplicationFactor
from ropewalk.base.ids import NodeId
from ropewalk.controller.placement import place
from ropewalk.metadata.image import Broker
from ropewalk.metadata.records import BrokerState

racks = st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9)


def brokers_in(racks: list[str | None]) -> list[Broker]:
    return [
        Broker(node_id=NodeId(number), epoch=0, directory=b"", endpoints=(), rack=rack)
        for number, rack in enumerate(racks)
    ]


@given(racks, st.integers(1, 20), st.integers(0, 100), st.data())
def test_every_partition_has_distinct_brokers_and_leaders_are_even(
    racks: list[str | None], partition_count: int, seed: int, data: st.DataObject
) -> None:
    brokers = brokers_in(racks)
    factor = data.draw(st.integers(1, len(brokers)))
    placed = place(brokers, partition_count=partition_count, replication_factor=factor, rng=Random(seed))
    assert len(placed) == partition_count
    assert all(len(set(replicas)) == factor for replicas in placed)
    leaders = Counter({broker.node_id: 0 for broker in brokers})
    leaders.update(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.values()) <= 1


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9), st.integers(1, 20), st.data())
def test_no_rack_holds_two_replicas_while_another_holds_none(
    racks: list[str | None], partition_count: int, data: st.DataObject
) -> None:
    brokers = brokers_in(racks)
    factor = data.draw(st.integers(1, len(brokers)))
    placed = place(brokers, partition_count=partition_count, replication_factor=factor, rng=Random(0))
    for replicas in placed:
        used = Counter(racks[node_id] for node_id in replicas)
        assert len(used) == min(factor, len(set(racks)))


@given(racks, st.integers(0, 100), st.randoms(use_true_random=False))
def test_the_order_in_which_brokers_are_named_does_not_matter(
    racks: list[str | None], seed: int, shuffle: Random
) -> None:
    brokers = brokers_in(racks)
    expected = place(brokers, partition_count=7, replication_factor=1, rng=Random(seed))
    shuffle.shuffle(brokers)
    assert place(brokers, partition_count=7, replication_factor=1, rng=Random(seed)) == expected


def test_followers_of_one_leader_are_spread() -> None:
    placed = place(brokers_in([None] * 4), partition_count=12, replication_factor=2, rng=Random(0))
    followers: dict[NodeId, set[NodeId]] = {}
    for leader, follower in placed:
        followers.setdefault(leader, set()).add(follower)
    assert all(len(names) == 3 for names in followers.values())


@pytest.mark.parametrize("factor", [0, 3])
def test_more_replicas_than_brokers_or_none_are_refused(factor: int) -> None:
    with pytest.raises(InvalidReplicationFactor, match=r"only 2 broker\(s\) are registered"):
        place(brokers_in([None, None]), partition_count=1, replication_factor=factor, rng=Random(0))


def test_a_cluster_without_brokers_places_nothing() -> None:
    with pytest.raises(InvalidReplicationFactor, match=r"only 0 broker\(s\) are registered"):
        place([], partition_count=1, replication_factor=1, rng=Random(0))


@pytest.mark.parametrize("active", [1, 2, 3, 4, 5])
def test_every_partition_has_as_many_brokers_in_service_as_there_are(active: int) -> None:
    """Clusters of cores found partitions placed on three brokers out of service while two were in it."""
    brokers = [
        structs.replace(broker, state=BrokerState.ACTIVE if broker.node_id < active else BrokerState.FENCED)
        for broker in brokers_in([None] * 5)
    ]
    for replicas in place(brokers, partition_count=9, replication_factor=3, rng=Random(1)):
        in_service = [node_id < active for node_id in replicas]
        assert sum(in_service) == min(active, 3)
        assert in_service[0]
