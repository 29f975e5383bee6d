"""What nodes prove to each other is changed while the cluster runs: nobody is refused, and what was withdrawn opens nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.peer_connection import Credentials, PeerConnection, PeerRefused, open_peer
from ropewalk.client.producer import Producer
from ropewalk.node.life import Node
from ropewalk.records.record import Record
from ropewalk.security.cluster_secret import ClusterSecret
from ropewalk.security.node_certificates import self_signed
from ropewalk.security.peer_channels import OwnContexts, PeerChannels, PeerTls
from ropewalk.sim.machines.world import EPOCH_MS
from tests.cluster.nodes import PEER_PORT, Nodes, in_a_cluster
from tests.cluster.test_cluster_tls import write
from tests.security.node_authority import NodeAuthority, put

FORMER, NEXT = "the secret of last year, long enough", "the secret of this year, long enough"
REFUSALS = (
    "a node was refused",
    "no connection to another node",
    "no TLS with a client",
    "connection closed",
)


class Directory:
    """The files of one node."""

    def __init__(self, root: Path, node_id: int) -> None:
        self.node_id = node_id
        self.path = root / f"node{node_id}"
        self.path.mkdir()

    @property
    def secret(self) -> Path:
        return self.path / "secret"

    @property
    def previous(self) -> Path:
        return self.path / "previous"

    @property
    def keystore(self) -> Path:
        return self.path / "node.pem"

    @property
    def trust(self) -> Path:
        return self.path / "ca.pem"

    @property
    def revoked(self) -> Path:
        return self.path / "crl.pem"


async def hear(nodes: Nodes, node_id: int, *, cuts: bool = True) -> None:
    """As SIGHUP does; and a second later every connection to and from the node is cut, so that all are made again."""
    nodes[node_id].read_files_again()
    await asyncio.sleep(1)
    if cuts:
        cut(nodes, node_id)
    await asyncio.sleep(3)


def cut(nodes: Nodes, node_id: int) -> None:
    name = nodes.members[node_id].machine.name
    for end in nodes.world.network.connections():
        if PEER_PORT in (end.local[1], end.remote[1]) and name in (end.local[0], end.remote[0]):
            nodes.world.network.reset(end)


def refusals(logs: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    return [each for each in logs if each["event"] in REFUSALS]


async def come_with(nodes: Nodes, secret: str) -> PeerConnection:
    """As node 9, which nobody knows."""
    machine = nodes.members[1].machine
    own = OwnContexts(*self_signed())
    credentials = Credentials(
        9, None, ClusterSecret(secret), ("frontend",), PeerChannels(lambda: PeerTls.REQUIRE, lambda: own)
    )
    return await open_peer(
        nodes.world.network.host("stranger"),
        machine.clock,
        nodes.world.rng_for("stranger"),
        Address(machine.name, PEER_PORT),
        credentials=credentials,
        deadline_ms=nodes.world.now_s * 1000 + 5_000,
    )


def is_open(peer: PeerConnection) -> bool:
    return peer.connection.is_open


async def complaints(node: Node) -> list[str]:
    """What /healthz has."""
    checks = await node._parts.instruments.health.well()
    return [check.problem for check in checks if check.problem is not None]


class Load:
    """A client that writes one record after the other, and wants every one to be there once."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._count = 0
        self._is_over = False

    async def begin(self) -> None:
        self._client = self._nodes.client()
        await Admin(self._client).create_topics([NewTopic("load", 1, 3)])
        await self._nodes.until_opened("load")
        self._writing = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        producer = Producer(self._client, "load")
        while not self._is_over:
            await producer.send([Record(timestamp=EPOCH_MS, value=b"value")], partition=0)
            self._count += 1
            await asyncio.sleep(0.05)

    async def end(self) -> None:
        """Raises what the client has met with."""
        self._is_over = True
        await self._writing
        assert self._count > 100
        partition = self._nodes[0].image.topic("load").partitions[0]
        assert partition.leader is not None
        log = self._nodes[partition.leader].partitions.find("load", 0).log
        assert log.end_offset == self._count
        self._client.close()


def with_files(
    root: Path,
    story: Callable[[Nodes, list[Directory]], Awaitable[None]],
    *settings: str,
    prepare: Callable[[Directory], Sequence[str]],
) -> None:
    directories = [Directory(root, node_id) for node_id in range(3)]
    differing = {each.node_id: tuple(prepare(each)) for each in directories}

    async def main(nodes: Nodes) -> None:
        await story(nodes, directories)

    in_a_cluster(main, *settings, differing=differing)


def secret_files(directory: Directory) -> Sequence[str]:
    put(directory.secret, FORMER)
    return (
        f"cluster.secret.file={directory.secret}",
        f"cluster.secret.previous.file={directory.previous}",
    )


@pytest.mark.parametrize(("order", "cuts"), [((0, 1, 2), True), ((2, 0, 1), False)])
def test_the_secret_is_changed_and_nobody_is_refused(
    tmp_path: Path, order: tuple[int, ...], cuts: bool
) -> None:
    """With connections that are made again at every step, and with those that were there before."""

    async def story(nodes: Nodes, directories: list[Directory]) -> None:
        load = Load(nodes)
        with capture_logs() as logs:
            await write(nodes, "before")
            await load.begin()
            for node_id in order:
                put(directories[node_id].previous, FORMER)
                put(directories[node_id].secret, NEXT)
                await hear(nodes, node_id, cuts=cuts)
                await write(nodes, f"amid{node_id}")
            thief = await come_with(nodes, FORMER)
            await asyncio.sleep(30)  # connections are renewed meanwhile
            assert is_open(thief)
            assert refusals(logs) == []
            for node_id in reversed(order):
                put(directories[node_id].previous, "")
                nodes[node_id].read_files_again()
                await asyncio.sleep(6)
            assert not is_open(thief), "what was withdrawn is cut off"
            for node_id in order:
                cut(nodes, node_id)
            await write(nodes, "after")
            await load.end()
            withdrawn = [each["reason"] for each in logs if each["event"] == "connection closed"]
            assert withdrawn == ["the secret that node 9 proved is not accepted any more"]
            assert [each for each in refusals(logs) if each["event"] != "connection closed"] == []
            with pytest.raises(PeerRefused):
                await come_with(nodes, FORMER)
            (await come_with(nodes, NEXT)).connection.close()

    with_files(tmp_path, story, "peer.tls=require", prepare=secret_files)


def test_files_that_cannot_be_used_leave_the_secret_as_it_was(tmp_path: Path) -> None:
    async def story(nodes: Nodes, directories: list[Directory]) -> None:
        with capture_logs() as logs:
            put(directories[1].secret, "short")
            await hear(nodes, 1)
            await write(nodes, "t")
        reasons = [each["reason"] for each in logs if each["event"] == "the cluster's secret stays as it was"]
        assert reasons == ["cluster.secret has 5 characters, it needs 16 at least"]
        (trouble,) = [each for each in await complaints(nodes[1]) if "secret" in each]
        assert trouble == "cluster.secret has 5 characters, it needs 16 at least"
        put(directories[1].secret, FORMER)
        await hear(nodes, 1)
        await write(nodes, "another")
        assert not [each for each in await complaints(nodes[1]) if "secret" in each]

    with_files(tmp_path, story, "peer.tls=require", prepare=secret_files)


def test_certificates_and_their_authority_are_changed_and_nobody_is_refused(tmp_path: Path) -> None:
    former, following = NodeAuthority("former"), NodeAuthority("following")

    def prepare(directory: Directory) -> Sequence[str]:
        former.issue(directory.keystore, directory.node_id)
        former.trust(directory.trust)
        return (
            f"peer.ssl.keystore.location={directory.keystore}",
            f"peer.ssl.truststore.location={directory.trust}",
        )

    async def story(nodes: Nodes, directories: list[Directory]) -> None:
        steps: tuple[Callable[[Directory], object], ...] = (
            lambda each: former.trust(each.trust, following),
            lambda each: following.issue(each.keystore, each.node_id),
            lambda each: following.trust(each.trust),
        )
        with capture_logs() as logs:
            await write(nodes, "before")
            for number, step in enumerate(steps):
                for directory in directories:
                    step(directory)
                    await hear(nodes, directory.node_id)
                await write(nodes, f"amid{number}")
        assert refusals(logs) == []
        with capture_logs() as logs:
            former.issue(directories[2].keystore, 2)
            await hear(nodes, 2)
        assert [each["event"] for each in logs if each["log_level"] == "error"] == [
            "certificates stay as they were"
        ]
        await write(nodes, "after")

    with_files(tmp_path, story, "peer.tls=ca", prepare=prepare)


def test_a_node_whose_certificate_is_revoked_is_cut_off(tmp_path: Path) -> None:
    authority = NodeAuthority()

    def prepare(directory: Directory) -> Sequence[str]:
        authority.issue(directory.keystore, directory.node_id)
        authority.trust(directory.trust)
        authority.revoke(directory.revoked)
        return (
            f"peer.ssl.keystore.location={directory.keystore}",
            f"peer.ssl.truststore.location={directory.trust}",
            f"peer.ssl.crl.location={directory.revoked}",
        )

    async def story(nodes: Nodes, directories: list[Directory]) -> None:
        with capture_logs() as logs:
            for node_id in (0, 1):
                authority.revoke(directories[node_id].revoked, directories[2].keystore)
                nodes[node_id].read_files_again()
            await asyncio.sleep(8)
            assert not nodes.is_serving(2, seen_by=0)
        reasons = {each["reason"] for each in logs if each["event"] == "connection closed"}
        assert reasons == {"the certificate of node 2 was revoked"}
        refused = {each["reason"] for each in logs if each["event"] == "no TLS with a client"}
        assert refused == {"its certificate is refused: certificate revoked"}
        assert nodes.is_serving(1, seen_by=0)

    with_files(tmp_path, story, "peer.tls=ca", "node.session.timeout.ms=3000", prepare=prepare)
