"""An authority that vouches for nodes: what a certificate lets a node be, and what becomes of one that was stolen."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import pytest
from structlog.testing import capture_logs

from ropewalk.base.errors import InvalidSetting
from ropewalk.broker.peers.peers import Lane
from ropewalk.client.connections.peer_connection import PeerRefused
from ropewalk.client.errors import Unreachable
from ropewalk.metadata.records import ALL_ROLES
from ropewalk.security.certificates import ClientAuth, TlsFiles
from ropewalk.security.identity import CertificateRefused
from ropewalk.security.node_certificates import load_for_nodes, names_of_node
from ropewalk.security.peer_channels import OwnContexts, PeerChannels, PeerTls
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch
from tests.kafka.peers import Peer, Peers, among_peers
from tests.security.node_authority import NodeAuthority

T = TypeVar("T")
EPOCH = datetime.fromtimestamp(EPOCH_MS / 1000, UTC)


@lru_cache(maxsize=4)
def nodes_authority(name: str = "nodes") -> NodeAuthority:
    return NodeAuthority(name)


def files(
    keystore: Path, trust: Path, node_id: int, *, roles: tuple[str, ...] = ALL_ROLES, revoked: str = ""
) -> TlsFiles:
    return TlsFiles(
        keystore=str(keystore),
        truststore=str(trust),
        revoked=revoked,
        client_auth=ClientAuth.REQUIRED,
        versions=("TLSv1.3",),
        node_id=node_id,
        roles=roles,
    )


def vouched(
    keystore: Path, trust: Path, *, claims: int, roles: tuple[str, ...] = ALL_ROLES, is_honest: bool = True
) -> PeerChannels:
    """Of a node with these files. One that is not honest looks at nothing before it uses them."""
    if is_honest:
        loaded = load_for_nodes(files(keystore, trust, claims, roles=roles), EPOCH_MS)
        assert loaded.calling is not None
        own = OwnContexts(loaded.context, loaded.calling, loaded.names)
        return PeerChannels(lambda: PeerTls.CA, lambda: own)
    plain = TlsFiles(keystore=str(keystore), versions=("TLSv1.3",), node_id=claims)
    loaded = load_for_nodes(plain, EPOCH_MS)
    assert loaded.calling is not None
    stolen = OwnContexts(loaded.context, loaded.calling)
    return PeerChannels(lambda: PeerTls.REQUIRE, lambda: stolen)


class Site:
    """Node 2 is honest, and has an authority that vouches for nodes."""

    def __init__(self, peers: Peers, directory: Path) -> None:
        self.peers = peers
        self.directory = directory
        self.authority = nodes_authority()
        self.trust = self.authority.trust(directory / "nodes-ca.pem")

    two: Peer

    async def start(self) -> "Site":
        keystore = self.authority.issue(self.directory / "two.pem", 2)
        self.two = await self.peers.start(2, channels=vouched(keystore, self.trust, claims=2))
        return self

    async def comes(
        self, node_id: int, keystore: Path, *, roles: tuple[str, ...] = ALL_ROLES, is_honest: bool = False
    ) -> Peer:
        own = vouched(keystore, self.trust, claims=node_id, roles=roles, is_honest=is_honest)
        return await self.peers.start(node_id, roles=roles, channels=own)

    async def refusals(self, caller: Peer) -> list[tuple[str, str]]:
        """What node 2 says of a caller that is not let in: the address, and why."""
        with capture_logs() as logs, pytest.raises(Unreachable):
            await caller.links.to_address(self.two.address, Lane.CALLS).peer(
                deadline_ms=self.peers.deadline_ms()
            )
        events = ("a node was refused", "no TLS with a client")
        return [(each["client"], each["reason"]) for each in logs if each["event"] in events]


def at_a_site(directory: Path, story: Callable[[Site], Awaitable[T]]) -> T:
    async def main(peers: Peers) -> T:
        return await story(await Site(peers, directory).start())

    return among_peers(main)


def test_nodes_that_an_authority_vouches_for_speak(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        one = await site.comes(1, site.authority.issue(tmp_path / "one.pem", 1), is_honest=True)
        for caller, answerer in ((one, site.two), (site.two, one)):
            peer = await caller.links.open(answerer.address, deadline_ms=site.peers.deadline_ms())
            assert peer.node_id == answerer.node_id
            answer = await peer.connection.call(
                fetch.API, fetch.FetchRequest(), deadline_ms=site.peers.deadline_ms()
            )
            assert answer.session_id == caller.node_id

    at_a_site(tmp_path, story)


def test_a_stolen_certificate_of_a_front_end_is_that_and_nothing_else(tmp_path: Path) -> None:
    """The thief has the secret, too."""

    async def story(site: Site) -> None:
        stolen = site.authority.issue(tmp_path / "front.pem", 7, "frontend")
        as_broker = await site.comes(7, stolen, roles=("broker",))
        assert await site.refusals(as_broker) == [("node7", "its certificate does not let node 7 be broker")]
        as_another = await site.comes(3, stolen, roles=("frontend",))
        assert await site.refusals(as_another) == [
            ("node3", "its certificate is for node 7, it is said to be node 3")
        ]
        as_itself = await site.comes(
            8, site.authority.issue(tmp_path / "8.pem", 8, "frontend"), roles=("frontend",)
        )
        peer = await as_itself.links.open(site.two.address, deadline_ms=site.peers.deadline_ms())
        asked = fetch.FetchRequest(replica_state=fetch.ReplicaState(8, 1))
        answer = await peer.connection.call(fetch.API, asked, deadline_ms=site.peers.deadline_ms())
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    at_a_site(tmp_path, story)


def test_the_secret_alone_opens_nothing(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        foreign = nodes_authority("others").issue(tmp_path / "one.pem", 1)
        one = await site.comes(1, foreign)
        ((address, reason),) = await site.refusals(one)
        assert (address, reason.partition(":")[0]) == ("node1", "its certificate is refused")

    at_a_site(tmp_path, story)


def test_a_certificate_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        one = await site.comes(1, site.authority.issue(tmp_path / "one.pem", 1, cluster="invoices"))
        assert await site.refusals(one) == [
            ("node1", "its certificate is for cluster invoices, this node's for orders")
        ]

    at_a_site(tmp_path, story)


def test_a_certificate_that_ended_is_refused_whatever_openssl_thinks_of_it(tmp_path: Path) -> None:
    """By the node's clock, as with a session that is resumed: OpenSSL does not look at the end again."""

    async def story(site: Site) -> None:
        ended = site.authority.issue(tmp_path / "one.pem", 1, ends=EPOCH - timedelta(seconds=1))
        plain = TlsFiles(keystore=str(ended), versions=("TLSv1.3",), node_id=1)
        loaded = load_for_nodes(plain, EPOCH_MS - 10_000)
        assert loaded.calling is not None
        stolen = OwnContexts(loaded.context, loaded.calling)
        one = await site.peers.start(1, channels=PeerChannels(lambda: PeerTls.REQUIRE, lambda: stolen))
        assert await site.refusals(one) == [("node1", "the certificate of node 1 has ended")]

    at_a_site(tmp_path, story)


def test_a_connection_ends_with_the_certificate_of_its_caller(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        soon = site.authority.issue(tmp_path / "one.pem", 1, ends=EPOCH + timedelta(seconds=60))
        one = await site.comes(1, soon)
        peer = await one.links.open(site.two.address, deadline_ms=site.peers.deadline_ms())
        await peer.connection.wait_end()
        assert 55 < site.peers.world.now_s < 65

    at_a_site(tmp_path, story)


def test_a_connection_ends_with_the_certificate_of_whoever_answers(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        soon = site.authority.issue(tmp_path / "one.pem", 1, ends=EPOCH + timedelta(seconds=60))
        one = await site.comes(1, soon)
        link = site.two.links.to_address(one.address, Lane.CALLS)
        peer = await link.peer(deadline_ms=site.peers.deadline_ms())
        looking = asyncio.ensure_future(site.two.links.run())
        await peer.connection.wait_end()
        looking.cancel()
        assert 55 < site.peers.world.now_s < 70

    at_a_site(tmp_path, story)


def test_a_caller_looks_at_whom_it_reaches(tmp_path: Path) -> None:
    """Somebody with a front end's certificate and the secret answers in the place of node 3."""

    async def story(site: Site) -> None:
        stolen = site.authority.issue(tmp_path / "front.pem", 7, "frontend")
        impostor = await site.comes(3, stolen)
        with pytest.raises(PeerRefused, match="its certificate is for node 7, it is said to be node 3"):
            await site.two.links.open(impostor.address, deadline_ms=site.peers.deadline_ms())

    at_a_site(tmp_path, story)


@pytest.mark.parametrize(
    ("uris", "words"),
    [
        ((), "has 0 names"),
        (("spiffe://orders/node/1",), "has 0 names"),
        (
            ("ropewalk://orders/node/1?roles=broker", "ropewalk://orders/node/2?roles=broker"),
            "has 2 names",
        ),
        (("ropewalk://orders/node/1",), "which is not"),
        (("ropewalk://orders/node/1?roles=",), "which is not"),
        (("ropewalk://orders/node/-1?roles=broker",), "which is not"),
        (("ropewalk://orders/node/1?roles=broker&x",), "which is not"),
    ],
)
def test_a_certificate_names_one_node(tmp_path: Path, uris: tuple[str, ...], words: str) -> None:
    import ssl

    path = nodes_authority().issue(tmp_path / "x.pem", 1, uris=uris)
    pem = path.read_text()
    der = ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERTIFICATE") :])
    with pytest.raises(CertificateRefused, match=words):
        names_of_node(der, EPOCH_MS)


def test_what_is_no_certificate_names_nobody() -> None:
    with pytest.raises(CertificateRefused, match="cannot be read"):
        names_of_node(b"", EPOCH_MS)


@pytest.mark.parametrize(
    ("keystore", "words"),
    [
        ("another node's", "its certificate is for node 3, it is said to be node 1"),
        ("a front end's", "its certificate does not let node 1 be broker, controller"),
        ("a foreign one", "does not vouch for it"),
        ("a nameless one", "has 0 names"),
        ("a revoked one", "does not vouch for it: certificate revoked"),
    ],
)
def test_a_node_does_not_use_what_others_would_refuse(tmp_path: Path, keystore: str, words: str) -> None:
    ours, path = nodes_authority(), tmp_path / "one.pem"
    trust, revoked = ours.trust(tmp_path / "ca.pem"), ""
    match keystore:
        case "another node's":
            ours.issue(path, 3)
        case "a front end's":
            ours.issue(path, 1, "frontend")
        case "a foreign one":
            nodes_authority("others").issue(path, 1)
        case "a nameless one":
            ours.issue(path, 1, uris=())
        case _:
            revoked = str(ours.revoke(tmp_path / "crl.pem", ours.issue(path, 1)))
    with pytest.raises(InvalidSetting, match=words) as refused:
        load_for_nodes(files(path, trust, 1, revoked=revoked), EPOCH_MS)
    assert str(refused.value).startswith("peer.ssl.keystore.location: node 1 cannot use")
