"""TLS between nodes: whose proofs fit which connection, and what becomes of those who stand between."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import pytest
from structlog.testing import capture_logs

from ropewalk.broker.peers.peers import Lane
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.peer_connection import PeerRefused
from ropewalk.client.errors import Unreachable
from ropewalk.security.cluster_secret import (
    Channel,
    ClusterSecret,
    Handshake,
    Side,
    offered_digest,
)
from ropewalk.security.node_certificates import self_signed
from ropewalk.security.peer_channels import IN_THE_CLEAR, OwnContexts, PeerChannels, PeerTls
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch
from ropewalk.wire.peer import hello, node_heartbeat, prove
from tests.kafka.middleman import Middleman
from tests.kafka.peers import PORT, SECRET, Peer, Peers, among_peers
from tests.kafka.test_peer_listener import bare, beat

T = TypeVar("T")
NONCE = bytes(range(32))


@lru_cache(maxsize=8)
def contexts(name: str) -> OwnContexts:
    assert name
    return OwnContexts(*self_signed())


def channels(mode: str, name: str = "its own") -> PeerChannels:
    own = contexts(name)
    return PeerChannels(lambda: PeerTls(mode), lambda: own)


async def heartbeat(peers: Peers, caller: Peer, answerer: Peer) -> None:
    """Something that only a node is answered."""
    answerer.services.decides = True
    link = caller.links.to_address(answerer.address, Lane.HEARTBEATS)
    answer = await link.call(node_heartbeat.API, beat(int(caller.node_id)), deadline_ms=peers.deadline_ms())
    assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("calls", "listens", "is_encrypted"),
    [
        ("require", "require", True),
        ("require", "allow", True),
        ("allow", "require", True),
        ("allow", "allow", True),
        ("allow", "off", False),
        ("off", "allow", False),
        ("off", "off", False),
    ],
)
def test_nodes_find_the_channel_that_both_take(calls: str, listens: str, is_encrypted: bool) -> None:
    async def story(peers: Peers) -> None:
        one = await peers.start(1, channels=channels(calls) if calls != "off" else IN_THE_CLEAR)
        two = await peers.start(
            2, channels=channels(listens, "another") if listens != "off" else IN_THE_CLEAR
        )
        for _ in range(2):
            await heartbeat(peers, one, two)
            link = one.links.to_address(two.address, Lane.HEARTBEATS)
            assert link.connection is not None
            assert (link.connection.certificate is not None) == is_encrypted
            link.connection.close()

    among_peers(story)


@pytest.mark.parametrize(("calls", "listens"), [("require", "off"), ("off", "require")])
def test_nodes_that_agree_on_no_channel_say_so(calls: str, listens: str) -> None:
    async def story(peers: Peers) -> None:
        one = await peers.start(1, channels=channels(calls) if calls != "off" else IN_THE_CLEAR)
        two = await peers.start(2, channels=channels(listens) if listens != "off" else IN_THE_CLEAR)
        with capture_logs() as logs, pytest.raises(Unreachable) as refused:
            await one.links.to_address(two.address, Lane.CALLS).peer(deadline_ms=peers.deadline_ms())
        if calls == "require":
            assert "no TLS with it, which peer.tls asks for" in str(refused.value)
        else:
            assert [(each["client"], each["reason"]) for each in logs if "client" in each] == [
                ("node1", "plain Kafka came, where TLS is spoken")
            ]

    among_peers(story)


def between(
    story: Callable[[Peers, Peer, Peer, Middleman], Awaitable[T]],
    *,
    mode: str,
    shows: str | None,
    calls_by_tls: bool,
) -> T:
    """Node 1 and node 2, with somebody between: node 1 believes node 2 to be there."""

    async def main(peers: Peers) -> T:
        one, two = (
            await peers.start(1, channels=channels(mode)),
            await peers.start(2, channels=channels(mode, "another")),
        )
        host = peers.world.network.host("middle")
        calling = contexts("the middle").calling
        middle = Middleman(host, two.address, calls_by=(lambda: calling) if calls_by_tls else None)
        shown = None if shows is None else contexts(shows).listening
        await middle.listen("middle", PORT, tls=None if shown is None else lambda: shown)
        return await story(peers, one, two, middle)

    return among_peers(main)


async def call_through(peers: Peers, one: Peer) -> None:
    await one.links.to_address(Address("middle", PORT), Lane.CALLS).peer(deadline_ms=peers.deadline_ms())


def said(logs: Sequence[Mapping[str, object]], event: str) -> list[tuple[object, object]]:
    return [(each.get("client", each.get("peer")), each["reason"]) for each in logs if each["event"] == event]


def test_a_relay_with_a_certificate_of_its_own_is_refused_by_both_ends() -> None:
    """It knows no secret, so it passes on what the two ends say; the caller finds another certificate than the answerer showed."""

    async def story(peers: Peers, one: Peer, two: Peer, middle: Middleman) -> None:
        with capture_logs() as logs:
            with pytest.raises(PeerRefused, match="somebody stands between"):
                await call_through(peers, one)
            await asyncio.sleep(1)
        assert middle.overheard, "it has read both sides"
        assert said(logs, "no connection to another node") == [
            (
                "middle:9192",
                "its cluster.secret is not ours, or somebody stands between who shows a certificate of his own",
            )
        ]
        assert said(logs, "a node was refused") == [
            ("middle", "its cluster.secret is not that of node 2, or somebody stands between")
        ]

    between(story, mode="require", shows="the middle", calls_by_tls=True)


def test_a_relay_that_proves_for_the_caller_is_refused_by_the_answerer() -> None:
    """It hands node 1's own proof on: that is bound to the certificate that node 1 saw."""

    async def story(peers: Peers) -> None:
        two = await peers.start(2, channels=channels("require", "another"))
        shown, other = contexts("another").listening, contexts("the middle").listening
        connection = await Connection.open(
            peers.world.network.host("middle"),
            two.machine.clock,
            two.address,
            client_id="middle",
            deadline_ms=peers.deadline_ms(),
            tls=lambda: contexts("the middle").calling,
        )
        greeted = await connection.call(
            hello.API, hello.HelloRequest(1, None, NONCE, ("broker",)), deadline_ms=peers.deadline_ms()
        )

        def proof(certificate_hash: bytes | None) -> bytes:
            bound = Channel(certificate_hash, offered_digest(connection.versions.offered), ("broker",))
            return ClusterSecret(SECRET).prove(
                Side.CALLER, Handshake(NONCE, bytes(greeted.nonce), 1, 2, bound)
            )

        assert greeted.proof == ClusterSecret(SECRET).prove(
            Side.ANSWERER,
            Handshake(
                NONCE,
                bytes(greeted.nonce),
                1,
                2,
                Channel(shown.certificate_hash, offered_digest(connection.versions.offered), ("broker",)),  # type: ignore[attr-defined]
            ),
        ), "what an honest node 2 proves"
        relayed = proof(other.certificate_hash)  # type: ignore[attr-defined]
        with capture_logs() as logs:
            answer = await connection.call(
                prove.API, prove.ProveRequest(relayed), deadline_ms=peers.deadline_ms()
            )
            await connection.wait_end()
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert said(logs, "a node was refused") == [
            ("middle", "its cluster.secret is not that of node 2, or somebody stands between")
        ]

    among_peers(story)


@pytest.mark.parametrize("shows", [None, "the middle"])
def test_whoever_strips_tls_is_refused(shows: str | None) -> None:
    """On the caller's side, or on the answerer's."""

    async def story(peers: Peers, one: Peer, two: Peer, middle: Middleman) -> None:
        with capture_logs() as logs, pytest.raises(PeerRefused):
            await call_through(peers, one)
        refused = [*said(logs, "no connection to another node"), *said(logs, "no TLS with a client")]
        assert refused
        assert {address for address, _ in refused} <= {"middle:9192", "middle"}

    between(story, mode="require", shows=shows, calls_by_tls=shows is None)


def test_versions_that_were_taken_away_are_noticed() -> None:
    """Somebody tells node 1 that node 2 knows the Hello of the release before only, or takes away another API."""

    async def story(peers: Peers) -> None:
        two = await peers.start(2)
        connection = await Connection.open(
            peers.world.network.host("node1"),
            two.machine.clock,
            two.address,
            client_id="node-1",
            deadline_ms=peers.deadline_ms(),
        )
        fewer = [each for each in connection.versions.offered if each[0] != fetch.API.key]
        greeted = await connection.call(
            hello.API, hello.HelloRequest(1, None, NONCE), deadline_ms=peers.deadline_ms()
        )
        handshake = Handshake(NONCE, bytes(greeted.nonce), 1, 2, Channel(None, offered_digest(fewer), ()))
        secret = ClusterSecret(SECRET)
        assert secret.proved_by((bytes(greeted.proof),), Side.ANSWERER, handshake) is None

    among_peers(story)


def test_under_tls_a_proof_that_is_bound_to_nothing_is_refused() -> None:
    async def story(peers: Peers) -> None:
        two = await peers.start(2, channels=channels("allow"))
        connection = await Connection.open(
            peers.world.network.host("old"),
            two.machine.clock,
            two.address,
            client_id="old",
            deadline_ms=peers.deadline_ms(),
            tls=lambda: contexts("the middle").calling,
        )
        greeted = await connection.call(
            hello.API, hello.HelloRequest(1, None, NONCE), deadline_ms=peers.deadline_ms(), version_max=0
        )
        assert greeted.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert greeted.error_message == "it speaks TLS, and does not bind its proof to that"
        await connection.wait_end()

    among_peers(story)


def test_a_node_of_the_release_before_is_taken_in_the_clear() -> None:
    async def story(peers: Peers) -> int:
        two = await peers.start(2, channels=channels("allow"))
        connection = await bare(peers, two)
        greeted = await connection.call(
            hello.API, hello.HelloRequest(1, None, NONCE), deadline_ms=peers.deadline_ms(), version_max=0
        )
        secret, handshake = ClusterSecret(SECRET), Handshake(NONCE, bytes(greeted.nonce), 1, 2)
        assert secret.accepts(bytes(greeted.proof), Side.ANSWERER, handshake)
        proof = prove.ProveRequest(secret.prove(Side.CALLER, handshake))
        return (await connection.call(prove.API, proof, deadline_ms=peers.deadline_ms())).error_code

    assert among_peers(story) == ErrorCode.NONE


def test_a_channel_that_is_no_longer_taken_is_refused_from_then_on() -> None:
    """The level comes into force while nodes run."""

    async def story(peers: Peers) -> None:
        modes = {"now": PeerTls.ALLOW}
        own = contexts("its own")
        two = await peers.start(2, channels=PeerChannels(lambda: modes["now"], lambda: own))
        one = await peers.start(1)
        await heartbeat(peers, one, two)
        modes["now"] = PeerTls.REQUIRE
        with pytest.raises(Unreachable):
            await one.links.open(two.address, deadline_ms=peers.deadline_ms())

    among_peers(story)
