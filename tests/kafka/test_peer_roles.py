"""What a node may ask of others, by what it says to be."""

import pytest
from structlog.testing import capture_logs

from ropewalk.base.errors import InvalidRequest
from ropewalk.base.ids import NodeId
from ropewalk.broker.peers.calls.register_node import register_node
from ropewalk.client.connections.peer_connection import PeerRefused
from ropewalk.client.errors import ConnectionLost
from ropewalk.controller.brokers import Registration
from ropewalk.kafka.peer.apis import ASKERS, PEER_APIS, Askers
from ropewalk.metadata.records import ALL_ROLES, Endpoint
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, offset_for_leader_epoch
from ropewalk.wire.peer import alter_partition
from tests.kafka.peers import Peer, Peers, among_peers

OF_A_FRONT_END = {
    "ApiVersions",
    "Hello",
    "Prove",
    "FindController",
    "RegisterNode",
    "NodeHeartbeat",
    "FetchMetadata",
    "ClusterHealth",
    "Forward",
    "ChangeQueue",
    "AllocateProducerIds",
    "ListOffsets",
    "QueueCredits",
    "QueueDeliveries",
    "QueueLook",
    "QueueReset",
    "QueueSend",
    "QueueSettle",
    "QueueTask",
}
"""Written down here a second time: whoever gives front ends more has to mean it."""

REGISTRATION = Registration(
    node_id=NodeId(1),
    directory=bytes(range(16)),
    endpoints=(Endpoint("PEER", "node1", 9192),),
    rack=None,
    roles=("broker",),
    clock_ms=7,
    is_clean=False,
    damaged=frozenset(),
    unsynced=frozenset(),
    process=b"p" * 16,
)


def test_every_api_says_who_may_ask_it() -> None:
    assert set(ASKERS) == {api.key for api in PEER_APIS}


@pytest.mark.parametrize("roles", [("frontend",), ("controller",), ("controller", "frontend"), ()])
def test_whoever_holds_no_partitions_may_ask_this_and_nothing_else(roles: tuple[str, ...]) -> None:
    may = {api.name for api in PEER_APIS if ASKERS[api.key].include(frozenset(roles))}
    assert may == OF_A_FRONT_END


def test_brokers_may_ask_everything() -> None:
    assert all(askers.include(frozenset({"broker"})) for askers in ASKERS.values())


def test_what_is_not_in_the_table_nobody_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(peers: Peers) -> None:
        node = await peers.start(1)
        left = {key: askers for key, askers in ASKERS.items() if key != fetch.API.key}
        monkeypatch.setattr("ropewalk.kafka.peer.introduction.ASKERS", left)
        table = node.admission.table(frozenset(ALL_ROLES))
        assert table[fetch.API.key].handle is not node.admission.served[fetch.API.key].handle

    among_peers(story)


async def connected(peers: Peers, *roles: str) -> tuple[Peer, Peer]:
    return await peers.start(1, roles=roles), await peers.start(2)


def test_a_front_end_does_not_fetch_as_a_replica() -> None:
    async def story(peers: Peers) -> None:
        one, two = await connected(peers, "frontend")
        peer = await one.links.open(two.address, deadline_ms=peers.deadline_ms())
        asked = fetch.FetchRequest(replica_state=fetch.ReplicaState(1, 1))
        with capture_logs() as logs:
            answer = await peer.connection.call(fetch.API, asked, deadline_ms=peers.deadline_ms())
            await peer.connection.wait_end()
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert [(each["event"], each["client"], each["node_id"], each["reason"]) for each in logs] == [
            ("a node was refused", "node1", 1, "a node that is frontend may not ask Fetch")
        ]

    among_peers(story)


def test_a_front_end_does_not_change_who_is_in_sync() -> None:
    async def story(peers: Peers) -> None:
        one, two = await connected(peers, "frontend")
        two.services.decides = True
        peer = await one.links.open(two.address, deadline_ms=peers.deadline_ms())
        asked = alter_partition.AlterPartitionRequest(1, 1, ())
        answer = await peer.connection.call(alter_partition.API, asked, deadline_ms=peers.deadline_ms())
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert two.services.alterations == []

    among_peers(story)


def test_a_refusal_that_has_no_place_in_the_answer_ends_the_connection() -> None:
    async def story(peers: Peers) -> None:
        one, two = await connected(peers, "frontend", "controller")
        peer = await one.links.open(two.address, deadline_ms=peers.deadline_ms())
        asked = offset_for_leader_epoch.OffsetForLeaderEpochRequest(1, ())
        with pytest.raises(ConnectionLost):
            await peer.connection.call(offset_for_leader_epoch.API, asked, deadline_ms=peers.deadline_ms())

    among_peers(story)


def test_nobody_registers_as_more_than_it_connected_as() -> None:
    async def story(peers: Peers) -> None:
        one, two = await connected(peers, "frontend")
        two.services.decides = True
        one.learn(two, controller=two)
        with pytest.raises(InvalidRequest, match="node 1 registers as broker, and connected as frontend"):
            await one.controller_link().call(register_node(REGISTRATION), deadline_ms=peers.deadline_ms())
        assert two.services.registered == []

    among_peers(story)


def test_roles_that_nobody_can_have_are_refused() -> None:
    async def story(peers: Peers) -> None:
        one, two = await connected(peers, "frontend", "root")
        with pytest.raises(PeerRefused, match="which nobody can be"):
            await one.links.open(two.address, deadline_ms=peers.deadline_ms())

    among_peers(story)


def test_askers_are_told_apart() -> None:
    assert Askers.EVERY_NODE.include(frozenset())
    assert not Askers.BROKERS.include(frozenset({"frontend", "controller"}))
