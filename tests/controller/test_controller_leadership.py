"""Elections and reassignments: what is decided and what is refused, on a cluster of three brokers."""

import pytest

from ropewalk.base.errors import (
    ElectionNotNeeded,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    LeaderNotAvailable,
    NoReassignment,
    RopewalkError,
    UnknownPartition,
    UnknownTopic,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.controller.leadership import decide_elect_any, decide_elect_preferred, decide_reassign
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerRegistered, PartitionCreated, TopicCreated

TOPIC = TopicId(b"t" * 16)


def nodes(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, numbers))


def cluster(*, leader: int | None, isr: tuple[int, ...]) -> Image:
    """`orders-0` on brokers 1 and 2, with 0 standing by."""
    image = Image()
    for number in range(3):
        image.apply(BrokerRegistered(NodeId(number), number, bytes([number]) * 16, ()))
    image.apply(TopicCreated(TOPIC, "orders"))
    leads = None if leader is None else NodeId(leader)
    image.apply(PartitionCreated(TOPIC, 0, nodes(1, 2), nodes(*isr), leads, LeaderEpoch(4), 7))
    return image


def test_the_preferred_replica_leads_again() -> None:
    image = cluster(leader=2, isr=(2, 1))
    for record in decide_elect_preferred(image, "orders", 0):
        image.apply(record)
    partition = image.partition("orders", 0)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 5, 8)


@pytest.mark.parametrize(
    ("leader", "isr", "expected"),
    [
        pytest.param(1, (1, 2), ElectionNotNeeded, id="it leads"),
        pytest.param(2, (2,), LeaderNotAvailable, id="it is out of sync"),
    ],
)
def test_no_election_of_the_preferred_replica(
    leader: int, isr: tuple[int, ...], expected: type[RopewalkError]
) -> None:
    with pytest.raises(expected):
        decide_elect_preferred(cluster(leader=leader, isr=isr), "orders", 0)


@pytest.mark.parametrize(
    ("leader", "expected"),
    [
        pytest.param(2, ElectionNotNeeded, id="there is a leader"),
        pytest.param(None, LeaderNotAvailable, id="nobody can lead without a loss"),
    ],
)
def test_no_election_of_just_anybody(leader: int | None, expected: type[RopewalkError]) -> None:
    with pytest.raises(expected):
        decide_elect_any(cluster(leader=leader, isr=(2,)), "orders", 0)


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [pytest.param((1, 2), (1, 2), id="as they are"), pytest.param((2, 1), (2, 1), id="another order")],
)
def test_replicas_stay_where_they_are(replicas: tuple[int, ...], expected: tuple[int, ...]) -> None:
    image = cluster(leader=1, isr=(1, 2))
    for record in decide_reassign(image, "orders", 0, nodes(*replicas)):
        image.apply(record)
    assert image.partition("orders", 0).replicas == expected
    assert image.partition("orders", 0).leader == 1


@pytest.mark.parametrize(
    ("topic", "index", "replicas", "expected"),
    [
        pytest.param("orders", 0, None, NoReassignment, id="nothing to give up"),
        pytest.param("orders", 0, (0, 1), InvalidReplicaAssignment, id="elsewhere"),
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
    image = cluster(leader=1, isr=(1, 2))
    wanted = None if replicas is None else nodes(*replicas)
    with pytest.raises(expected):
        decide_reassign(image, topic, index, wanted, may_change_factor=False)
