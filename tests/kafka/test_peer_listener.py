"""The internal listener: who is let in, what is answered to those who are not, and what a node's links do."""

import asyncio

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from ropewalk.base.errors import ControllerUnavailable, InvalidRequest, InvalidSetting, StalePartitionEpoch
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.broker.peers.calls.allocate_producer_ids import allocate_producer_ids as allocation
from ropewalk.broker.peers.calls.alter_partition import alter_partition
from ropewalk.broker.peers.calls.cluster_health import cluster_health
from ropewalk.broker.peers.calls.fetch_metadata import fetch_metadata
from ropewalk.broker.peers.calls.node_heartbeat import node_heartbeat as heartbeat
from ropewalk.broker.peers.calls.register_node import register_node
from ropewalk.broker.peers.peers import Lane, PeerLink
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.peer_connection import Credentials, PeerRefused, open_peer
from ropewalk.client.errors import ConnectionLost, Unreachable
from ropewalk.controller.alter_partition import PartitionAlteration
from ropewalk.controller.brokers import Registration
from ropewalk.controller.load import NodeLoad, PartitionLoad
from ropewalk.controller.membership import Heartbeat
from ropewalk.metadata.lineage import Position
from ropewalk.metadata.records import Endpoint
from ropewalk.security.cluster_secret import Channel, ClusterSecret, Handshake, Side, offered_digest
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, list_offsets
from ropewalk.wire.peer import (
    allocate_producer_ids,
    find_controller,
    hello,
    node_heartbeat,
    prove,
)
from tests.kafka.peers import SECRET, Peer, Peers, among_peers

NONCE = bytes(range(32))
WRONG = "a secret of another cluster"
ALLOCATE = allocate_producer_ids.AllocateProducerIdsRequest(1, 1)
ALLOCATION = allocation(NodeId(1), 1)
REGISTRATION = Registration(
    node_id=NodeId(1),
    directory=bytes(range(16)),
    endpoints=(Endpoint("PEER", "node1", 9192),),
    rack="r",
    roles=("broker",),
    clock_ms=7,
    is_clean=False,
    damaged=frozenset({(TopicId(bytes(16)), 3)}),
    unsynced=frozenset({(TopicId(bytes(range(16))), 4)}),
    process=b"p" * 16,
)


async def bare(peers: Peers, peer: Peer) -> Connection:
    """A connection that has not introduced itself."""
    return await Connection.open(
        peers.world.network.host("stranger"),
        peer.machine.clock,
        peer.address,
        client_id="stranger",
        deadline_ms=peers.deadline_ms(),
    )


async def until_due(peers: Peers, link: PeerLink) -> None:
    """Until the link may try again."""
    await asyncio.sleep(link.retry_at_ms / 1000 - peers.world.now_s + 0.001)


def beat(node_id: int) -> node_heartbeat.NodeHeartbeatRequest:
    return node_heartbeat.NodeHeartbeatRequest(node_id, 1, 0, wants_to_stop=False, load=None)


def test_two_nodes_with_the_same_secret_speak() -> None:
    async def story(peers: Peers) -> None:
        one, two = await peers.start(1), await peers.start(2)
        one.learn(two)
        link = one.links.to_node(two.node_id, Lane.REPLICAS)
        answer = await link.call(fetch.API, fetch.FetchRequest(), deadline_ms=peers.deadline_ms())
        assert answer.session_id == 1, "the answerer knows who asks"
        assert link.is_connected

    among_peers(story)


@pytest.mark.parametrize("caller_secret", [SECRET, WRONG])
def test_a_wrong_secret_is_refused_and_both_ends_say_so_once(caller_secret: str) -> None:
    async def story(peers: Peers) -> None:
        answerer = await peers.start(2, secret=WRONG if caller_secret == SECRET else SECRET)
        caller = await peers.start(1, secret=caller_secret)
        link = caller.links.to_address(answerer.address, Lane.CALLS)
        with capture_logs() as logs:
            for _ in range(5):
                with pytest.raises(PeerRefused, match=r"its cluster\.secret is not ours") as refused:
                    await link.call(allocate_producer_ids.API, ALLOCATE, deadline_ms=peers.deadline_ms())
                await until_due(peers, link)
        assert "node2:9192" in str(refused.value)
        said = [(entry["event"], entry["reason"]) for entry in logs]
        assert sorted(said) == [
            ("a node was refused", "its cluster.secret is not that of node 2"),
            ("no connection to another node", "its cluster.secret is not ours"),
        ]
        assert answerer.services.heard == []

    among_peers(story)


def test_a_node_of_another_cluster_is_told_so() -> None:
    async def story(peers: Peers) -> None:
        one, two = await peers.start(1), await peers.start(2, cluster_id="another")
        with pytest.raises(PeerRefused, match="this is cluster another, the caller belongs to the-cluster"):
            await one.links.to_address(two.address, Lane.CALLS).peer(deadline_ms=peers.deadline_ms())

    among_peers(story)


def test_a_node_that_has_not_joined_yet_may_ask() -> None:
    async def story(peers: Peers) -> str | None:
        one, two = await peers.start(1, cluster_id=None), await peers.start(2)
        peer = await one.links.to_address(two.address, Lane.CALLS).peer(deadline_ms=peers.deadline_ms())
        return peer.cluster_id

    assert among_peers(story) == "the-cluster"


def test_a_node_in_the_place_of_another_is_not_taken_for_it() -> None:
    async def story(peers: Peers) -> None:
        one, two, three = await peers.start(1), await peers.start(2), await peers.start(3)
        impostor = Peer(three.machine, 2, SECRET, None)
        one.learn(impostor)
        assert two.node_id == impostor.node_id
        with pytest.raises(PeerRefused, match="it is node 3, not 2"):
            await one.links.to_node(two.node_id, Lane.CALLS).peer(deadline_ms=peers.deadline_ms())

    among_peers(story)


def test_nothing_is_answered_before_the_secret_is_proved() -> None:
    async def story(peers: Peers) -> None:
        node = await peers.start(1)
        node.services.decides = True
        deadline_ms = peers.deadline_ms()
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

        stranger = await bare(peers, node)
        allocated = await stranger.call(allocate_producer_ids.API, ALLOCATE, deadline_ms=deadline_ms)
        assert allocated.error_code == refused
        assert allocated.first_producer_id == -1
        await stranger.wait_end()

        stranger = await bare(peers, node)
        replica = fetch.FetchRequest(replica_state=fetch.ReplicaState(2, 1))
        fetched = await stranger.call(fetch.API, replica, deadline_ms=deadline_ms)
        assert fetched.error_code == refused
        await stranger.wait_end()

        stranger = await bare(peers, node)
        found = await stranger.call(
            find_controller.API, find_controller.FindControllerRequest(), deadline_ms=deadline_ms
        )
        assert (found.error_code, found.nodes) == (refused, ())
        await stranger.wait_end()

        stranger = await bare(peers, node)
        with pytest.raises(ConnectionLost):
            await stranger.call(list_offsets.API, list_offsets.ListOffsetsRequest(2), deadline_ms=deadline_ms)
        assert node.services.heard == []

    among_peers(story)


def test_a_request_behind_an_unfinished_introduction_is_refused() -> None:
    """Hello alone proves nothing."""

    async def story(peers: Peers) -> None:
        node = await peers.start(1)
        node.services.decides = True
        stranger = await bare(peers, node)
        greeting = hello.HelloRequest(7, None, NONCE)
        deadline_ms = peers.deadline_ms()
        greeted = stranger.send(hello.API, 0, greeting, deadline_ms=deadline_ms)
        allocated = stranger.send(allocate_producer_ids.API, 0, ALLOCATE, deadline_ms=deadline_ms)
        assert (await greeted).error_code == 0
        assert (await allocated).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await stranger.wait_end()

    among_peers(story)


def test_a_proof_that_was_overheard_is_of_no_use() -> None:
    """Neither sent again on another connection, nor the answerer's own sent back to it."""

    async def story(peers: Peers) -> None:
        node = await peers.start(1)
        deadline_ms = peers.deadline_ms()

        async def attempt(proof: bytes | None) -> tuple[hello.HelloResponse, int]:
            stranger = await bare(peers, node)
            greeting = hello.HelloRequest(7, None, NONCE)
            greeted = await stranger.call(hello.API, greeting, deadline_ms=deadline_ms)
            answer = await stranger.call(
                prove.API,
                prove.ProveRequest(greeted.proof if proof is None else proof),
                deadline_ms=deadline_ms,
            )
            if answer.error_code:
                await stranger.wait_end()
            return greeted, answer.error_code

        greeted, code = await attempt(None)
        assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "its own proof"
        offered = (await bare(peers, node)).versions.offered
        channel = Channel(None, offered_digest(offered), ())
        handshake = Handshake(NONCE, bytes(greeted.nonce), 7, greeted.node_id, channel)
        secret = ClusterSecret(SECRET)
        assert secret.accepts(bytes(greeted.proof), Side.ANSWERER, handshake), "as the two have it"
        overheard = secret.prove(Side.CALLER, handshake)
        _, code = await attempt(overheard)
        assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "one made for another connection"

    among_peers(story)


def test_a_second_hello_and_a_proof_without_one_end_the_connection() -> None:
    async def story(peers: Peers) -> None:
        node = await peers.start(1)
        deadline_ms = peers.deadline_ms()
        stranger = await bare(peers, node)
        with pytest.raises(ConnectionLost):
            await stranger.call(prove.API, prove.ProveRequest(bytes(32)), deadline_ms=deadline_ms)
        stranger = await bare(peers, node)
        greeting = hello.HelloRequest(7, None, NONCE)
        await stranger.call(hello.API, greeting, deadline_ms=deadline_ms)
        with pytest.raises(ConnectionLost):
            await stranger.call(hello.API, greeting, deadline_ms=deadline_ms)
        stranger = await bare(peers, node)
        with pytest.raises(ConnectionLost):
            await stranger.call(hello.API, hello.HelloRequest(7, None, b"short"), deadline_ms=deadline_ms)

    among_peers(story)


def test_a_stranger_may_not_send_much() -> None:
    async def story(peers: Peers) -> None:
        node = await peers.start(1)
        stranger = await bare(peers, node)
        with pytest.raises(ConnectionLost):
            await stranger.call(
                hello.API, hello.HelloRequest(7, "x" * 10_000, NONCE), deadline_ms=peers.deadline_ms()
            )

    among_peers(story)


def test_whoever_does_not_introduce_itself_is_sent_away() -> None:
    async def story(peers: Peers) -> None:
        node, other = await peers.start(1), await peers.start(2)
        proved = await other.links.open(node.address, deadline_ms=peers.deadline_ms())
        with capture_logs() as logs:
            silent = [await bare(peers, node) for _ in range(3)]
            for stranger in silent:
                await stranger.wait_end()
        assert peers.world.now_s < 10
        assert [entry["reason"] for entry in logs] == ["it did not introduce itself within 2000 ms"]
        assert proved.connection.is_open

    among_peers(story)


def test_a_node_speaks_for_itself_only() -> None:
    async def story(peers: Peers) -> None:
        one, two = await peers.start(1), await peers.start(2)
        two.services.decides = True
        one.learn(two)
        link = one.links.to_node(two.node_id, Lane.HEARTBEATS)
        answer = await link.call(node_heartbeat.API, beat(3), deadline_ms=peers.deadline_ms())
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert two.services.heard == []

    among_peers(story)


def test_the_end_of_the_connection_of_heartbeats_is_noticed_once() -> None:
    """And only that of the connection that was used last: the one before it may linger."""

    async def story(peers: Peers) -> None:
        one, two = await peers.start(1), await peers.start(2)
        two.services.decides = True
        one.learn(two)
        former = await one.links.open(two.address, deadline_ms=peers.deadline_ms())
        latter = await one.links.open(two.address, deadline_ms=peers.deadline_ms())
        for peer in (former, latter, latter):
            await peer.connection.call(node_heartbeat.API, beat(1), deadline_ms=peers.deadline_ms())
        former.connection.close()
        await asyncio.sleep(1)
        assert two.services.disconnected == []
        latter.connection.close()
        await asyncio.sleep(1)
        assert two.services.disconnected == [1]

    among_peers(story)


def test_a_link_connects_again_and_fails_at_once_meanwhile() -> None:
    async def story(peers: Peers) -> None:
        one, two = await peers.start(1), await peers.start(2)
        two.services.decides = True
        one.learn(two)
        link = one.links.to_node(two.node_id, Lane.HEARTBEATS)
        await link.call(node_heartbeat.API, beat(1), deadline_ms=peers.deadline_ms())
        two.machine.kill()
        await link.wait_lost()
        assert not link.is_connected
        with pytest.raises(Unreachable, match="connection refused"):
            await link.call(node_heartbeat.API, beat(1), deadline_ms=peers.deadline_ms())
        tried_at_s = peers.world.now_s
        with pytest.raises(Unreachable, match="connection refused"):
            await link.call(node_heartbeat.API, beat(1), deadline_ms=peers.deadline_ms())
        assert peers.world.now_s == tried_at_s, "nobody waits for a node that is known to be gone"
        await two.machine.start(two.start)
        await until_due(peers, link)
        await link.call(node_heartbeat.API, beat(1), deadline_ms=peers.deadline_ms())

    among_peers(story)


def test_the_controller_is_found_from_a_seed_and_followed_when_it_changes() -> None:
    async def story(peers: Peers) -> None:
        one, two, three = await peers.start(1), await peers.start(2), await peers.start(3)
        seat = one.controller_link(two)
        for peer in (two, three):
            peer.learn(two, three, controller=three, epoch=1)
        three.services.decides = True
        await seat.call(ALLOCATION, deadline_ms=peers.deadline_ms())
        assert three.services.heard == ["allocation for 1 in 1"]

        three.services.decides, two.services.decides = False, True
        for peer in (two, three):
            peer.learn(controller=two, epoch=2)
        await seat.call(ALLOCATION, deadline_ms=peers.deadline_ms())
        assert two.services.heard == ["allocation for 1 in 1"]

        three.machine.kill()
        two.machine.kill()
        with pytest.raises(ConnectionLost):  # it may have been done: the caller knows whether to ask again
            await seat.call(ALLOCATION, deadline_ms=peers.deadline_ms())
        with pytest.raises(ControllerUnavailable, match=r"no controller can be reached: .*node2:9192"):
            await seat.call(ALLOCATION, deadline_ms=peers.deadline_ms(2_000))
        await two.machine.start(two.start)
        await seat.call(ALLOCATION, deadline_ms=peers.deadline_ms())

    among_peers(story)


def test_a_controller_that_hangs_does_not_hide_its_successor() -> None:
    """The power of one is cut, so nothing refuses; the next is found long before the first attempt would end."""

    async def story(peers: Peers) -> None:
        one, two, three = await peers.start(1), await peers.start(2), await peers.start(3)
        one.learn(two, three, controller=three, epoch=1)
        three.services.decides = True
        seat = one.controller_link(two, three)
        await seat.call(ALLOCATION, deadline_ms=peers.deadline_ms())
        three.machine.cut_power()
        two.services.decides = True
        two.learn(two, three, controller=two, epoch=2)
        one.learn(controller=two, epoch=2)
        before_s = peers.world.now_s
        await seat.call(ALLOCATION, deadline_ms=peers.deadline_ms())
        assert peers.world.now_s - before_s < 0.5

    among_peers(story)


def test_what_nodes_ask_of_the_controller_is_handed_on() -> None:
    async def story(peers: Peers) -> None:
        one, two = await peers.start(1), await peers.start(2)
        two.services.decides = True
        one.learn(two, controller=two)
        link, deadline_ms = one.controller_link(), peers.deadline_ms()

        let = await link.call(register_node(REGISTRATION), deadline_ms=deadline_ms)
        assert (let.broker_epoch, let.cluster_id) == (101, "the-cluster")
        assert two.services.registered == [REGISTRATION]

        alive = Heartbeat(node_id=NodeId(1), broker_epoch=1, metadata_offset=0, wants_to_stop=True)
        told = PartitionLoad(TopicId(bytes(16)), 3, 4, 5, 6)
        load = NodeLoad(cpu_permille=7, disk_used_bytes=8, disk_total_bytes=9, partitions=(told,))
        pulse = await link.call(heartbeat(alive, load), deadline_ms=deadline_ms)
        assert (pulse.is_fenced, pulse.may_stop, pulse.controller_id) == (False, True, 0)
        assert two.services.loads == [load]

        alteration = PartitionAlteration(
            topic_id=TopicId(bytes(16)),
            index=2,
            leader_epoch=LeaderEpoch(5),
            partition_epoch=6,
            isr=[(NodeId(1), 9)],
        )
        altering = alter_partition(NodeId(1), 4, [alteration], lambda _topic_id, _index: ())
        (altered,) = await link.call(altering, deadline_ms=deadline_ms)
        assert isinstance(altered.outcome, StalePartitionEpoch)
        assert two.services.alterations == [alteration]

        ids = await link.call(ALLOCATION, deadline_ms=deadline_ms)
        assert (ids.start, ids.end) == (1000, 1010)

        page = await link.call(fetch_metadata(NodeId(1), Position(41), 100), deadline_ms=deadline_ms)
        assert (page.end_offset, page.records) == (42, b"records")

        (trouble,) = await link.call(cluster_health(), deadline_ms=deadline_ms)
        assert (trouble.what, trouble.where) == ("nobody leads", "t")

    among_peers(story)


def test_other_refusals_of_the_controller_are_raised() -> None:
    async def story(peers: Peers) -> None:
        one, two = await peers.start(1), await peers.start(2)
        two.services.decides = True
        one.learn(two, controller=two)
        registration = structs.replace(REGISTRATION, node_id=NodeId(9))
        with pytest.raises(InvalidRequest, match="node 1 speaks in the name of node 9"):
            await one.controller_link().call(register_node(registration), deadline_ms=peers.deadline_ms())

    among_peers(story)


def test_no_seed_and_no_node_is_said_plainly() -> None:
    async def story(peers: Peers) -> None:
        one = await peers.start(1)
        with pytest.raises(ControllerUnavailable, match="neither seeds nor other nodes are known"):
            await one.controller_link().call(ALLOCATION, deadline_ms=peers.deadline_ms(500))

    among_peers(story)


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="has 5 characters"):
        ClusterSecret("short")


def test_the_secret_is_not_shown() -> None:
    assert SECRET not in repr(ClusterSecret(SECRET))
    assert SECRET not in repr(Credentials(1, None, ClusterSecret(SECRET)))


def test_a_client_listener_is_not_taken_for_an_internal_one() -> None:
    from tests.kafka.door import NODE, Door, at_the_door

    async def story(door: Door) -> None:
        credentials = Credentials(1, None, ClusterSecret(SECRET))
        with pytest.raises(PeerRefused, match="it is not the internal listener of a node"):
            await open_peer(
                door.world.network.host("client"),
                door.machine.clock,
                door.world.rng_for("peer"),
                NODE,
                credentials=credentials,
                deadline_ms=door.deadline_ms,
            )

    at_the_door(story)
