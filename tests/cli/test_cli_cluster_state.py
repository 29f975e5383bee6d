"""What is said of a cluster, from what its brokers tell."""

from ropewalk.base.ids import NodeId
from ropewalk.cli.unclean import Leaderless, lines
from ropewalk.client.administration.copies import Copy
from ropewalk.client.administration.membership import Loss, Membership, Node, PartitionState, TopicState
from ropewalk.client.connections.address import Address
from ropewalk.views.cluster_state import ClusterState


def nodes(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, numbers))


def partition(
    index: int,
    leader: int | None,
    isr: tuple[NodeId, ...],
    *,
    replicas: tuple[NodeId, ...] = nodes(0, 1, 2),
    eligible: tuple[NodeId, ...] = (),
    offline: tuple[NodeId, ...] = (),
    adding: tuple[NodeId, ...] = (),
) -> PartitionState:
    led = None if leader is None else NodeId(leader)
    return PartitionState(index, led, 5, replicas, isr, eligible, offline, (), adding, ())


def cluster(
    *partitions: PartitionState, fenced: tuple[int, ...] = (), controller: int | None = 0
) -> ClusterState:
    members = tuple(
        Node(NodeId(number), "fenced" if number in fenced else "active", Address("h", 9092 + number), None)
        for number in range(3)
    )
    decides = None if controller is None else NodeId(controller)
    membership = Membership("c", decides, 1, 10, members, ())
    return ClusterState(membership, (TopicState("t", False, None, None, None, partitions),))


def told(state: ClusterState) -> list[tuple[str, str, str]]:
    return [(each.what, each.where, each.why) for each in state.troubles()]


def test_a_cluster_that_is_well() -> None:
    state = cluster(partition(0, 0, nodes(0, 1, 2)), partition(1, 1, nodes(0, 1, 2)))
    assert told(state) == []
    summary = state.summary()
    assert (summary["health"], summary["leaders_not_preferred"]) == ("good", 1)
    assert [(row.leaders, row.replicas, row.replicas_behind) for row in state.nodes()] == [
        (1, 2, 0),
        (1, 2, 0),
        (0, 2, 0),
    ]


def test_a_node_that_is_gone_and_what_it_leaves_behind() -> None:
    state = cluster(
        partition(0, 0, nodes(0, 1), offline=nodes(2)),
        partition(1, None, (), eligible=nodes(2), offline=nodes(2)),
        fenced=(2,),
    )
    assert told(state) == [
        ("nobody leads", "t-1", "may lead: 2; offline: 2"),
        ("node is fenced", "node 2", "the controller does not hear of it"),
        ("under-replicated", "t-0", "not in sync: 2"),
    ]
    assert state.nodes()[2].replicas_behind == 2
    assert [str(name) for name, _ in state.leaderless(["t"])] == ["t-1"]
    assert [str(name) for name, _ in state.leaderless(["t-1"])] == ["t-1"]
    assert state.leaderless(["t-0"]) == [], "somebody leads it"


def test_what_is_known_before_a_replica_out_of_sync_leads() -> None:
    found = Leaderless(
        "t-1",
        5,
        (2,),
        0,
        ((NodeId(0), Copy(3, 40, 4)), (NodeId(1), "it hangs"), (NodeId(2), None)),
    )
    assert list(lines(found)) == [
        "t-1: nobody leads since epoch 5",
        "  node 0 holds offsets 3 to 40, the last of epoch 4, would lead",
        "  node 1 does not say what it holds: it hangs",
        "  node 2 is not in service",
        "  all that was acknowledged is with 2; what 0 lacks of it is lost for good",
    ]
    assert list(lines(Leaderless("t-1", 5, (), None, ())))[1:] == [
        "  no replica is in service, so nobody can be elected"
    ]


def test_a_replica_that_is_being_added_is_not_missed() -> None:
    moving = partition(0, 0, nodes(0, 1), replicas=nodes(0, 1, 2), adding=nodes(2))
    assert told(cluster(moving)) == []
    assert cluster(moving).summary()["partitions_moving"] == 1


def test_without_a_controller_nothing_can_be_changed() -> None:
    assert told(cluster(controller=None))[0][0] == "no controller"


def test_what_was_lost_is_told_for_as_long_as_it_is_remembered() -> None:
    lost = (Loss("t", 3, NodeId(1), 9, 0, "forced"), Loss("", 4, NodeId(2), 9, 0, "last leader"))
    state = ClusterState(Membership("c", NodeId(0), 1, 10, (), lost), ())
    assert [(each.where, each.why) for each in state.losses()] == [
        ("t-3", "forced (leader 1)"),
        ("(deleted)-4", "last leader (leader 2)"),
    ]
    assert state.troubles() == []
