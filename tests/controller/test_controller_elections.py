"""What becomes of partitions as their brokers come and go; three replicas, of which two must be in sync."""

import pytest

from ropewalk.base.errors import InvalidRequest, StaleBrokerEpoch, UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.controller.membership import (
    Heartbeat,
    decide_fence_broker,
    decide_heartbeat,
    decide_remove_broker,
    decide_stop_broker,
    may_stop,
)
from ropewalk.metadata.records import BrokerState, BrokerStateChanged
from tests.controller.imagined import NOW_MS, ImaginedCluster, alter, losses


def orders(**settings: str) -> ImaginedCluster:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (0, 1, 2), **settings)
    return cluster


def stop(cluster: ImaginedCluster, number: int) -> None:
    cluster.apply(decide_stop_broker(cluster.image, NodeId(number), settings=cluster.settings, now_ms=NOW_MS))


def test_while_enough_are_in_sync_nobody_else_is_eligible() -> None:
    cluster = orders()
    cluster.fence(0)
    assert cluster.seats("orders") == (1, (1, 2), ())


def test_below_the_minimum_whoever_leaves_stays_eligible() -> None:
    cluster = orders()
    cluster.fence(0)
    cluster.fence(1)
    assert cluster.seats("orders") == (2, (2,), (1,))
    cluster.fence(2)
    assert cluster.seats("orders") == (None, (), (1, 2))
    assert cluster.partition("orders").last_leader == 2


def test_an_eligible_replica_leads_and_the_others_stay_eligible() -> None:
    cluster = orders()
    for number in (0, 1, 2):
        cluster.fence(number)
    cluster.unfence(0)
    assert cluster.seats("orders") == (None, (), (1, 2)), "it may lack what was acknowledged since it left"
    cluster.unfence(1)
    assert cluster.seats("orders") == (1, (1,), (2,))
    alter(cluster, 1, (1, 0))
    assert cluster.seats("orders") == (1, (0, 1), ())


def test_the_preferred_replica_is_elected_before_others() -> None:
    cluster = ImaginedCluster(4)
    cluster.topic("orders", (2, 3, 1))
    cluster.fence(2)
    assert cluster.seats("orders")[0] == 3


def test_the_last_leader_leads_again_after_a_power_cut_of_all_and_it_is_told() -> None:
    cluster = orders(flush="os")
    for number in (1, 2, 0):
        cluster.register(number, is_clean=False)
    assert cluster.seats("orders") == (None, (), ())
    assert not losses(cluster.unfence(1))
    assert cluster.seats("orders") == (None, (), ())
    (loss,) = losses(cluster.unfence(0))
    assert (loss.leader, loss.leader_epoch) == (0, 2)
    assert cluster.seats("orders") == (0, (0,), ())
    cluster.check()


def test_the_last_leader_does_not_lead_while_somebody_eligible_may_come_back() -> None:
    cluster = orders(flush="os")
    cluster.fence(1)
    cluster.fence(2)
    cluster.fence(0)
    cluster.register(0, is_clean=False)
    cluster.unfence(0)
    assert cluster.seats("orders") == (None, (), (2,))
    cluster.unfence(2)
    assert cluster.seats("orders") == (2, (2,), ())


@pytest.mark.parametrize("restart", [{"generation": 1}, {"damaged": True}])
def test_a_last_leader_that_lost_its_records_does_not_lead(restart: dict[str, int]) -> None:
    cluster = orders(flush="os")
    for number in (1, 2):
        cluster.register(number, is_clean=False)
    topic_id = cluster.image.topic("orders").topic_id
    if "generation" in restart:
        cluster.register(0, generation=1)
    else:
        cluster.register(0, damaged=[(topic_id, 0)])
    for number in (0, 1, 2):
        cluster.unfence(number)
    assert cluster.seats("orders") == (None, (), ())


def test_unclean_elections_are_held_where_they_are_allowed_and_told() -> None:
    cluster = orders(unclean_leader_election_enable="true")
    alter(cluster, 0, (0, 1))
    cluster.fence(1)
    (loss,) = losses(cluster.fence(0))
    assert (loss.leader, cluster.seats("orders")) == (2, (2, (2,), ()))


def test_a_single_replica_leads_itself_whatever_has_happened() -> None:
    cluster = ImaginedCluster(1)
    cluster.topic("orders", (0,), flush="os")
    cluster.register(0, is_clean=False)
    assert cluster.seats("orders") == (None, (), (0,))
    assert not losses(cluster.unfence(0))
    assert cluster.seats("orders") == (0, (0,), ())
    cluster.register(0, generation=1)
    assert cluster.seats("orders") == (None, (), ())
    assert losses(cluster.unfence(0))
    assert cluster.seats("orders") == (0, (0,), ())


def test_fencing_an_older_process_changes_nothing() -> None:
    cluster = orders()
    epoch = cluster.epoch(0)
    cluster.register(0)
    cluster.unfence(0)
    assert (
        decide_fence_broker(cluster.image, NodeId(0), epoch, settings=cluster.settings, now_ms=NOW_MS) == []
    )


def test_a_broker_that_stops_gives_up_what_others_can_lead() -> None:
    cluster = orders()
    stop(cluster, 0)
    assert cluster.seats("orders") == (1, (1, 2), ())
    assert may_stop(cluster.image, NodeId(0))
    stop(cluster, 1)
    assert cluster.seats("orders") == (2, (1, 2), ()), "writes need it as long as it is there"
    stop(cluster, 2)
    assert cluster.seats("orders") == (2, (1, 2), ()), "nobody else is left"
    assert may_stop(cluster.image, NodeId(2))
    cluster.check()


def test_a_broker_waits_before_it_stops_for_those_who_could_lead() -> None:
    cluster = orders()
    for number in (1, 2):
        cluster.fence(number)
        cluster.unfence(number)
    stop(cluster, 0)
    assert cluster.seats("orders") == (0, (0,), (2,))
    assert not may_stop(cluster.image, NodeId(0))
    alter(cluster, 0, (0, 1))
    stop(cluster, 0)
    assert cluster.seats("orders")[0] == 1
    assert may_stop(cluster.image, NodeId(0))


def beat(cluster: ImaginedCluster, number: int, offset: int, *, wants_to_stop: bool = False) -> Heartbeat:
    return Heartbeat(
        node_id=NodeId(number),
        broker_epoch=cluster.epoch(number),
        metadata_offset=offset,
        wants_to_stop=wants_to_stop,
    )


def test_a_broker_comes_into_service_when_it_has_followed_up_to_its_registration() -> None:
    cluster = ImaginedCluster()
    cluster.register(0)
    epoch = cluster.epoch(0)
    early, late = beat(cluster, 0, epoch), beat(cluster, 0, epoch + 1)
    assert decide_heartbeat(cluster.image, early, settings=cluster.settings, now_ms=NOW_MS) == []
    records = decide_heartbeat(cluster.image, late, settings=cluster.settings, now_ms=NOW_MS)
    assert records == [BrokerStateChanged(NodeId(0), epoch, BrokerState.ACTIVE)]
    cluster.apply(records)
    assert decide_heartbeat(cluster.image, late, settings=cluster.settings, now_ms=NOW_MS) == []


def test_heartbeats_of_strangers_and_former_processes_are_refused() -> None:
    cluster = ImaginedCluster(1)
    former = beat(cluster, 0, 99)
    cluster.register(0)
    with pytest.raises(StaleBrokerEpoch):
        decide_heartbeat(cluster.image, former, settings=cluster.settings, now_ms=NOW_MS)
    stranger = Heartbeat(node_id=NodeId(7), broker_epoch=0, metadata_offset=0)
    with pytest.raises(UnknownBroker):
        decide_heartbeat(cluster.image, stranger, settings=cluster.settings, now_ms=NOW_MS)


def test_a_broker_that_wants_to_stop_is_not_brought_back_by_its_heartbeats() -> None:
    cluster = orders()
    for expected in (BrokerState.STOPPING, BrokerState.STOPPING):
        stopping = beat(cluster, 0, cluster.image.end_offset, wants_to_stop=True)
        cluster.apply(decide_heartbeat(cluster.image, stopping, settings=cluster.settings, now_ms=NOW_MS))
        assert cluster.image.brokers[NodeId(0)].state is expected
    cluster.fence(0)
    assert decide_heartbeat(cluster.image, stopping, settings=cluster.settings, now_ms=NOW_MS) == []


def test_a_broker_is_taken_away_when_it_holds_nothing_and_is_out_of_service() -> None:
    cluster = orders()
    cluster.join(3)
    with pytest.raises(InvalidRequest, match="broker 0 holds 1 replicas"):
        decide_remove_broker(cluster.image, NodeId(0))
    with pytest.raises(InvalidRequest, match="broker 3 is in service"):
        decide_remove_broker(cluster.image, NodeId(3))
    with pytest.raises(UnknownBroker):
        decide_remove_broker(cluster.image, NodeId(9))
    stop(cluster, 3)
    cluster.apply(decide_remove_broker(cluster.image, NodeId(3)))
    assert NodeId(3) not in cluster.image.brokers
