"""Brokers that are to leave: the wish outlives restarts and snapshots, and is pursued until it is done or taken back."""

from random import Random

import pytest

from ropewalk.base.errors import InvalidReplicaAssignment, InvalidReplicationFactor, UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import LEAVER_FORGOTTEN_MS
from ropewalk.controller.departure import Departures, decide_leave, decide_stay, leavers
from ropewalk.controller.placement import place
from ropewalk.controller.relocation import held_count
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerLeaving
from tests.controller.imagined import NOW_MS, ImaginedCluster
from tests.controller.test_controller_relocation import finish_moves

LEAVER = NodeId(2)


def leave(cluster: ImaginedCluster) -> None:
    cluster.apply(decide_leave(cluster.image, LEAVER, settings=cluster.settings, now_ms=NOW_MS))


def test_whoever_leaves_is_drained_and_given_nothing_more() -> None:
    cluster = ImaginedCluster(4)
    cluster.topic("orders", (0, 1, 2), (2, 0), (1, 3))
    leave(cluster)
    finish_moves(cluster)
    assert held_count(cluster.image, LEAVER) == 0
    placed = place(cluster.image.brokers.values(), partition_count=8, replication_factor=3, rng=Random(0))
    assert all(LEAVER not in replicas for replicas in placed)
    with pytest.raises(InvalidReplicationFactor, match=r"only 3 broker\(s\) are registered"):
        place(cluster.image.brokers.values(), partition_count=1, replication_factor=4, rng=Random(0))


def test_the_wish_outlives_a_restart_another_disk_and_a_snapshot() -> None:
    cluster = ImaginedCluster(3)
    leave(cluster)
    cluster.fence(LEAVER)
    cluster.register(LEAVER, generation=1)
    assert leavers(cluster.image) == [LEAVER]
    loaded = Image()
    loaded.replace(cluster.image.facts(), cluster.image.end_offset)
    assert loaded.brokers == cluster.image.brokers
    assert loaded.replica_taker_count == 2


def test_nothing_is_begun_where_something_has_nowhere_to_go() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (0, 1, 2))
    with pytest.raises(InvalidReplicaAssignment, match="no other broker in service"):
        leave(cluster)
    assert leavers(cluster.image) == []


def test_two_who_leave_are_not_drained_onto_each_other() -> None:
    cluster = ImaginedCluster(4)
    cluster.topic("orders", (0, 2), (0, 3), (2, 3))
    cluster.apply(decide_leave(cluster.image, NodeId(3), settings=cluster.settings, now_ms=NOW_MS))
    leave(cluster)
    while finish_moves(cluster):
        for node_id in leavers(cluster.image):
            cluster.apply(decide_leave(cluster.image, node_id, settings=cluster.settings, now_ms=NOW_MS))
    assert [held_count(cluster.image, node_id) for node_id in leavers(cluster.image)] == [0, 0]


def test_a_wish_that_is_taken_back_is_forgotten() -> None:
    cluster = ImaginedCluster(3)
    assert decide_stay(cluster.image, LEAVER) == []
    leave(cluster)
    assert cluster.apply(decide_stay(cluster.image, LEAVER)) == [BrokerLeaving(LEAVER, is_leaving=False)]
    assert cluster.image.replica_taker_count == 3
    with pytest.raises(UnknownBroker):
        decide_stay(cluster.image, NodeId(7))


def test_whoever_has_left_is_forgotten_after_a_while_and_not_if_it_comes_back() -> None:
    cluster = ImaginedCluster(3)
    leave(cluster)
    departures = Departures()
    assert departures.on_round(cluster.image, 0) == [], "it is in service"
    cluster.fence(LEAVER)
    assert departures.on_round(cluster.image, 1) == []
    cluster.unfence(LEAVER)
    assert departures.on_round(cluster.image, 1 + LEAVER_FORGOTTEN_MS) == []
    cluster.fence(LEAVER)
    assert departures.on_round(cluster.image, 2 + LEAVER_FORGOTTEN_MS) == []
    assert departures.on_round(cluster.image, 2 + 2 * LEAVER_FORGOTTEN_MS) == [LEAVER]


def test_whoever_still_holds_something_is_not_forgotten() -> None:
    cluster = ImaginedCluster(4)
    cluster.topic("orders", (0, 2))
    leave(cluster)
    cluster.fence(LEAVER)
    departures = Departures()
    assert departures.on_round(cluster.image, 0) == []
    assert departures.on_round(cluster.image, LEAVER_FORGOTTEN_MS) == []
