"""Elections that are asked for: what is decided and what is refused."""

import pytest

from ropewalk.base.errors import ElectionNotNeeded, LeaderNotAvailable, NobodyEligible, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.controller.leadership import (
    decide_balance_leaders,
    decide_elect_any,
    decide_elect_preferred,
    decide_elect_unclean,
    leaders_by_broker,
)
from tests.controller.imagined import NOW_MS, ImaginedCluster, alter, losses


def test_the_preferred_replica_leads_again() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (1, 2))
    alter(cluster, 1, (1, 2))
    cluster.fence(1)
    assert cluster.seats("orders")[0] == 2
    cluster.unfence(1)
    alter(cluster, 2, (2, 1))
    cluster.apply(
        decide_elect_preferred(cluster.image, "orders", 0, settings=cluster.settings, now_ms=NOW_MS)
    )
    assert cluster.seats("orders") == (1, (1, 2), ())
    assert cluster.partition("orders").leader_epoch == 2
    cluster.check()


def test_no_election_of_a_preferred_replica_that_leads_or_is_out_of_sync() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (1, 2))
    with pytest.raises(ElectionNotNeeded):
        decide_elect_preferred(cluster.image, "orders", 0, settings=cluster.settings, now_ms=NOW_MS)
    cluster.fence(1)
    cluster.unfence(1)
    with pytest.raises(LeaderNotAvailable, match="orders-0 cannot be led by 1"):
        decide_elect_preferred(cluster.image, "orders", 0, settings=cluster.settings, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("fenced", "expected"),
    [
        pytest.param((), ElectionNotNeeded, id="there is a leader"),
        pytest.param((1, 2), NobodyEligible, id="nobody can lead without a loss"),
    ],
)
def test_no_election_of_just_anybody(fenced: tuple[int, ...], expected: type[RopewalkError]) -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (1, 2))
    for number in fenced:
        cluster.fence(number)
    with pytest.raises(expected):
        decide_elect_any(cluster.image, "orders", 0, settings=cluster.settings, now_ms=NOW_MS)


def test_an_election_by_force_is_told_as_a_loss() -> None:
    cluster = ImaginedCluster(4)
    cluster.topic("orders", (1, 2, 3))
    alter(cluster, 1, (1, 2))
    cluster.fence(2)
    cluster.fence(1)
    assert cluster.seats("orders") == (None, (), (1, 2))
    records = cluster.apply(
        decide_elect_unclean(cluster.image, "orders", 0, settings=cluster.settings, now_ms=NOW_MS)
    )
    (loss,) = losses(records)
    assert (loss.leader, loss.leader_epoch, loss.at_ms) == (3, 2, NOW_MS)
    assert "held by 1, 2, not in service" in loss.reason
    assert cluster.image.losses == (loss,)
    assert cluster.seats("orders") == (3, (3,), ())
    cluster.check()


def test_an_election_by_force_loses_nothing_where_it_need_not() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (1, 2))
    with pytest.raises(ElectionNotNeeded):
        decide_elect_unclean(cluster.image, "orders", 0, settings=cluster.settings, now_ms=NOW_MS)


def test_an_election_by_force_needs_a_replica_in_service() -> None:
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (1, 2))
    cluster.fence(1)
    cluster.fence(2)
    for leader, expected in ((None, NobodyEligible), (NodeId(0), LeaderNotAvailable)):
        with pytest.raises(expected):
            decide_elect_unclean(
                cluster.image, "orders", 0, settings=cluster.settings, now_ms=NOW_MS, leader=leader
            )


def test_leaders_are_balanced_a_few_at_a_time() -> None:
    cluster = ImaginedCluster(2)
    cluster.topic("orders", *[(0, 1)] * 5)
    cluster.fence(0)
    cluster.unfence(0)
    for index in range(5):
        alter(cluster, 1, (1, 0), index=index)
    assert leaders_by_broker(cluster.image) == {0: 0, 1: 5}
    counts = []
    while records := decide_balance_leaders(
        cluster.image, settings=cluster.settings, now_ms=NOW_MS, changes_max=2
    ):
        counts.append(len(cluster.apply(records)))
    assert counts == [2, 2, 1]
    assert leaders_by_broker(cluster.image) == {0: 5, 1: 0}
