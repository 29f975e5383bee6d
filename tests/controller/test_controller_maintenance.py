"""A broker that somebody works on does not lead, where others can."""

import pytest

from ropewalk.base.errors import LeaderNotAvailable, NotInForce, UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.controller.elections import whole
from ropewalk.controller.leadership import decide_balance_leaders, decide_elect_preferred
from ropewalk.controller.maintenance import maintenance_in_turns
from ropewalk.metadata.records import BrokerMaintenance, LevelChanged, MetadataRecord
from tests.controller.imagined import NOW_MS, ImaginedCluster


def maintain(cluster: ImaginedCluster, number: int, *, is_on: bool) -> list[MetadataRecord]:
    decision = maintenance_in_turns(
        cluster.image, NodeId(number), is_on=is_on, settings=cluster.settings, now_ms=NOW_MS
    )
    return cluster.apply(whole(decision))


def cluster_at(level: int) -> ImaginedCluster:
    cluster = ImaginedCluster(3)
    cluster.apply([LevelChanged(level)])
    cluster.topic("t", (0, 1, 2), (1, 2, 0))
    cluster.topic("single", (0,))
    return cluster


def leaders(cluster: ImaginedCluster, topic: str = "t") -> list[int | None]:
    return [partition.leader for partition in cluster.image.topic(topic).partitions]


def test_others_lead_while_it_lasts_and_it_leads_again_afterwards() -> None:
    cluster = cluster_at(2)
    assert leaders(cluster) == [0, 1]
    records = maintain(cluster, 0, is_on=True)
    assert records[0] == BrokerMaintenance(NodeId(0), is_on=True)
    assert leaders(cluster) == [1, 1]
    assert all(0 in partition.isr for partition in cluster.image.topic("t").partitions), "it is waited for"
    maintain(cluster, 0, is_on=False)
    assert leaders(cluster) == [0, 1]
    assert maintain(cluster, 0, is_on=False) == []


def test_it_leads_what_nobody_else_can() -> None:
    cluster = cluster_at(2)
    maintain(cluster, 0, is_on=True)
    assert leaders(cluster, "single") == [0]
    cluster.fence(1)
    assert leaders(cluster) == [2, 2]
    cluster.fence(2)
    assert leaders(cluster) == [0, 0]


def test_neither_the_balance_of_leaders_nor_an_election_ends_it() -> None:
    cluster = cluster_at(2)
    maintain(cluster, 0, is_on=True)
    balanced = decide_balance_leaders(cluster.image, settings=cluster.settings, now_ms=NOW_MS, changes_max=9)
    assert balanced == []
    with pytest.raises(LeaderNotAvailable, match="in maintenance"):
        decide_elect_preferred(cluster.image, "t", 0, settings=cluster.settings, now_ms=NOW_MS)


def test_it_holds_through_a_restart_and_a_snapshot() -> None:
    cluster = cluster_at(2)
    maintain(cluster, 0, is_on=True)
    cluster.join(0)
    assert cluster.image.brokers[NodeId(0)].in_maintenance
    assert BrokerMaintenance(NodeId(0), is_on=True) in list(cluster.image.facts())


def test_it_needs_its_level_and_a_broker() -> None:
    with pytest.raises(NotInForce, match="level 2, and level 1 is in force"):
        maintain(cluster_at(1), 0, is_on=True)
    with pytest.raises(UnknownBroker):
        maintain(cluster_at(2), 9, is_on=True)
