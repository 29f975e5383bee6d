"""TLS at the doors of a whole node in the simulator: who is served, who is named, and files that are replaced while it runs."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from structlog.testing import capture_logs

from ropewalk.base.durations import Durations
from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import CERTIFICATES_LOOK_MS
from ropewalk.base.metrics import Metric
from ropewalk.broker.watching.health import Check
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.errors import ConnectionLost, Unreachable
from ropewalk.node import life
from ropewalk.node.certificates import Certificates
from ropewalk.node.config import load
from ropewalk.node.life import Node
from ropewalk.node.options import NodeOptions
from ropewalk.security.certificates import TlsFiles
from ropewalk.sim.machines.network import HostNetwork
from ropewalk.sim.machines.world import EPOCH_MS, Machine, World
from ropewalk.wire.messages import alter_client_quotas, metadata, produce
from tests.kafka.door import batch_of, produce_request
from tests.security.authority import Contexts, authority

T = TypeVar("T")

OURS, OTHER = authority(), authority("other")
NODE = Address("node", 9093)
EPOCH = datetime.fromtimestamp(EPOCH_MS / 1000, UTC)


class Encrypted:
    """A client's network, on which everything is spoken under TLS."""

    def __init__(self, network: HostNetwork, tls: Contexts) -> None:
        self._network = network
        self._tls = tls

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, tls: object = None
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        assert tls is None, "it is said here"
        return await self._network.connect(factory, host, port, tls=self._tls)


class Site:
    def __init__(
        self, world: World, machine: Machine, directory: Path, settings: Sequence[str], http: str = "none"
    ) -> None:
        self.world = world
        self.machine = machine
        self.keystore = directory / "node.pem"
        self._settings = settings
        self._http = http
        OURS.issue(self.keystore, "node")
        OURS.trust(directory / "ca.pem")

    node: Node

    async def start(self) -> None:
        options = NodeOptions(
            http=self._http,
            sqs="none",
            data="/data",
            settings=(
                "telemetry.interval.ms=0",
                "audit.topic=false",
                "node.reserve.bytes=65536",
                f"ssl.keystore.location={self.keystore}",
                f"ssl.truststore.location={self.keystore.parent / 'ca.pem'}",
                *self._settings,
            ),
        )
        self.node = await self.machine.start(lambda ports: life.start(load(options, {}), ports))

    async def connect(self, tls: Contexts | None = None) -> Connection:
        plain = self.world.network.host("client")
        network: Any = plain if tls is None else Encrypted(plain, tls)
        return await Connection.open(
            network,
            self.machine.clock,
            NODE,
            client_id="test",
            deadline_ms=self.world.now_s * 1000 + 20_000,
        )

    async def ask(self, connection: Connection) -> metadata.MetadataResponse:
        deadline_ms = self.world.now_s * 1000 + 20_000
        return await connection.call(metadata.API, metadata.MetadataRequest(()), deadline_ms=deadline_ms)


def checks(site: Site) -> list[Check]:
    return [check for check in site.node._parts.instruments.health._ready() if check.name == "certificates"]


class Figures:
    """A sheet that keeps what is written on it."""

    per_partition = False

    def __init__(self) -> None:
        self.written: dict[tuple[str, tuple[str, ...]], float] = {}

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        self.written[metric.name, labels] = value

    def add_durations(self, metric: Metric, durations: Durations, *labels: str) -> None:
        raise AssertionError((metric, durations, labels))

    def add_row(self, row: tuple[Metric, ...], values: tuple[float, ...], *labels: str) -> None:
        raise AssertionError((row, values, labels))


Lines = Sequence[MutableMapping[str, Any]]


def at_a_node(
    directory: Path, story: Callable[[Site], Awaitable[None]], *settings: str, http: str = "none"
) -> Lines:
    """Run `story` beside a node that speaks TLS, and give what that said in the log."""

    async def main(world: World) -> None:
        site = Site(world, world.machine("node"), directory, settings, http)
        world.machine("client")
        await site.start()
        await story(site)

    with capture_logs() as lines, World(0) as world:
        world.run(main(world), limit_s=600)
    return lines


SHORT = ("kafka.listen=node:9093", "kafka.security.protocol=SSL")


def showing(keystore: Path) -> Contexts:
    """Of a client that trusts ours and has a certificate."""
    context = ssl.create_default_context(cafile=str(keystore.parent / "ca.pem"))
    context.load_cert_chain(keystore)
    return lambda: context


def reasons(lines: Lines) -> list[str]:
    return [line["reason"] for line in lines if "client" in line and "reason" in line]


def test_clients_speak_tls_and_hear_of_the_address_they_came_by(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        told = await site.ask(await site.connect(OURS.client))
        assert [(broker.host, broker.port) for broker in told.brokers] == [("node", 9093)]
        with pytest.raises((ConnectionLost, Unreachable)):
            await site.connect()
        with pytest.raises(ssl.SSLCertVerificationError):
            await Encrypted(site.world.network.host("client"), OTHER.client).connect(
                asyncio.Protocol, "node", 9093
            )
        await asyncio.sleep(1)

    lines = at_a_node(tmp_path, story, *SHORT)
    assert "plain Kafka came, where TLS is spoken" in reasons(lines)
    assert any("unknown ca" in reason for reason in reasons(lines)), reasons(lines)


def test_a_client_that_speaks_tls_to_a_plain_listener_is_told_apart(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        with pytest.raises(OSError, match=r"lost|reset|EOF|handshake"):
            await Encrypted(site.world.network.host("client"), OURS.client).connect(
                asyncio.Protocol, "node", 9093
            )

    lines = at_a_node(tmp_path, story, "kafka.listen=node:9093")
    assert any("it is the hello of TLS: this side speaks no TLS" in reason for reason in reasons(lines))


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"\x16\x03\x01\x00\xc8\x01\x00\x00", "it is the hello of TLS"),
        (b"PROXY TCP4 192.0.2.7 192.0.2.10 1 2\r\n", "it is a PROXY header"),
        (b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + bytes(12), "it is a PROXY header"),
    ],
)
@pytest.mark.parametrize("port", [9092, 9644])
def test_a_plain_door_tells_apart_what_else_is_spoken_to_it(
    tmp_path: Path, port: int, first: bytes, words: str
) -> None:
    async def story(site: Site) -> None:
        transport, _ = await site.world.network.host("client").connect(asyncio.Protocol, "node", port)
        assert isinstance(transport, asyncio.Transport)
        transport.write(first)
        await asyncio.sleep(60)
        assert transport.is_closing()

    lines = at_a_node(tmp_path, story, "kafka.listen=node:9092", http="node:9644")
    (reason,) = reasons(lines)
    assert words in reason


def test_a_certificate_gives_its_owner_a_name_whose_quotas_apply_until_it_ends(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        alice = OURS.issue(
            tmp_path / "alice.pem", common_name="alice", not_after=EPOCH + timedelta(seconds=90)
        )
        bob = OURS.issue(tmp_path / "bob.pem", common_name="bob")
        connection, other = await site.connect(showing(alice)), await site.connect(showing(bob))
        operation = alter_client_quotas.OpData("producer_byte_rate", 1.0, remove=False)
        entity = alter_client_quotas.EntityData("user", "alice")
        request = alter_client_quotas.AlterClientQuotasRequest(
            (alter_client_quotas.EntryData((entity,), (operation,)),), validate_only=False
        )
        deadline_ms = site.world.now_s * 1000 + 20_000
        await other.call(alter_client_quotas.API, request, deadline_ms=deadline_ms)
        sent = produce_request("nowhere", batch_of("value"))
        assert (await connection.call(produce.API, sent, deadline_ms=deadline_ms)).throttle_ms > 0
        assert (await other.call(produce.API, sent, deadline_ms=deadline_ms)).throttle_ms == 0
        while connection.is_open:
            assert site.world.now_s < 95
            await asyncio.sleep(1)
        assert site.world.now_s >= 89
        with pytest.raises((ConnectionLost, Unreachable)):
            await site.ask(await site.connect(showing(alice)))

    lines = at_a_node(tmp_path, story, *SHORT, "ssl.client.auth=required", "ssl.principal.from=cn")
    assert "the certificate of User:alice has ended" in reasons(lines)
    assert "the certificate of 'alice' has ended" in reasons(lines)


@pytest.mark.parametrize(
    ("settings", "client", "words"),
    [
        (("ssl.client.auth=required",), None, "peer did not return a certificate"),
        (("ssl.client.auth=required",), "foreign", "its certificate is refused"),
        (("ssl.client.auth=required",), "expired", "its certificate is refused: certificate has expired"),
        (("ssl.client.auth=required", "ssl.principal.from=san.uri"), "alice", "has 0 names of the kind"),
        (
            ("ssl.client.auth=none", "listener.name.ssl.ssl.client.auth=required"),
            None,
            "peer did not return a certificate",
        ),
    ],
)
def test_who_says_no_name_is_refused_with_the_reason(
    tmp_path: Path, settings: tuple[str, ...], client: str | None, words: str
) -> None:
    async def story(site: Site) -> None:
        OURS.trust(tmp_path / "ca.pem")
        contexts: Contexts = OURS.client
        yesterday = datetime.now(UTC) - timedelta(days=1)
        if client == "foreign":
            contexts = showing(OTHER.issue(tmp_path / "client.pem", common_name="alice"))
        elif client is not None:
            times: dict[str, datetime] = {}
            if client == "expired":
                times = {"not_before": yesterday - timedelta(days=1), "not_after": yesterday}
            contexts = showing(OURS.issue(tmp_path / "client.pem", common_name="alice", **times))
        began_s = site.world.now_s
        with pytest.raises((ConnectionLost, Unreachable, OSError)):
            await site.ask(await site.connect(contexts))
        assert site.world.now_s - began_s < 2

    lines = at_a_node(tmp_path, story, *SHORT, *settings)
    assert any(words in reason for reason in reasons(lines)), reasons(lines)


def test_who_shows_nothing_where_a_certificate_is_requested_is_served_without_a_name(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        await site.ask(await site.connect(OURS.client))

    at_a_node(tmp_path, story, *SHORT, "ssl.client.auth=requested")


def test_a_certificate_that_was_revoked_is_refused(tmp_path: Path) -> None:
    OURS.revoke(tmp_path / "crl.pem")

    async def story(site: Site) -> None:
        alice = OURS.issue(tmp_path / "alice.pem", common_name="alice")
        contexts = showing(alice)
        await site.ask(await site.connect(contexts))
        OURS.revoke(tmp_path / "crl.pem", alice)
        await asyncio.sleep(CERTIFICATES_LOOK_MS / 1000 + 1)
        with pytest.raises((ConnectionLost, Unreachable, OSError)):
            await site.ask(await site.connect(contexts))

    lines = at_a_node(
        tmp_path, story, *SHORT, "ssl.client.auth=required", f"ssl.crl.location={tmp_path / 'crl.pem'}"
    )
    assert "its certificate is refused: certificate revoked" in reasons(lines)


def test_files_that_change_are_tried_before_they_are_used(tmp_path: Path) -> None:
    """A bad one is refused once, /healthz says so, and those who come are served as before; a good one counts at once."""

    async def story(site: Site) -> None:
        former = await site.connect(OURS.client)
        await site.ask(former)
        good = site.keystore.read_bytes()
        site.keystore.write_bytes(b"half of a file")
        site.node.read_files_again()
        await asyncio.sleep(1)
        await site.ask(await site.connect(OURS.client))
        problems = [check.problem for check in checks(site)]
        assert problems == [f"files that changed are not used: {site.keystore} holds no certificate in PEM"]
        await asyncio.sleep(3 * CERTIFICATES_LOOK_MS / 1000)
        OTHER.issue(site.keystore, "node")
        await asyncio.sleep(CERTIFICATES_LOOK_MS / 1000 + 1)
        await site.ask(await site.connect(OTHER.client))
        await site.ask(former)
        assert good != site.keystore.read_bytes()
        assert checks(site) == []

    lines = at_a_node(tmp_path, story, *SHORT)
    assert [line["event"] for line in lines if line["event"].startswith("certificates")] == [
        "certificates stay as they were",
        "certificates were read again",
    ]


class Dial:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.at_ms = int(datetime.now(UTC).timestamp() * 1000)

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> float:
        return float(self.at_ms)


class AtOnce:
    """A pool without threads."""

    def run(self, function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            done.set_result(function(*arguments))
        except InvalidSetting as error:
            done.set_exception(error)
        return done

    async def drain(self) -> None:
        pass


def test_a_certificate_that_ends_soon_is_said_once_a_day_and_makes_the_node_unwell_in_its_last_week(
    tmp_path: Path,
) -> None:
    clock = Dial()
    end = datetime.fromtimestamp(clock.at_ms / 1000, UTC) + timedelta(days=31, hours=1)
    keystore = OURS.issue(tmp_path / "node.pem", "node", not_after=end)
    days: dict[str, list[int]] = {"said": [], "warned": [], "unwell": []}

    async def story() -> None:
        certificates = Certificates(AtOnce(), clock)
        await certificates.contexts(TlsFiles(keystore=str(keystore)))
        (kept,) = certificates._kept.values()
        for hour in range(32 * 24):
            with capture_logs() as lines:
                await certificates._look(kept)
            day = hour // 24
            days["said"] += [day] * len(lines)
            if hour % 24 == 23:
                days["warned"] += [day] * len(certificates.warnings())
                days["unwell"] += [day] * (certificates.trouble() is not None)
            clock.at_ms += 3_600_000
        assert (
            certificates.trouble()
            == f"the certificate in {keystore}, or the list of revocations beside it, has ended"
        )

    asyncio.run(story())
    assert days["said"] == list(range(1, 32))
    assert days["warned"] == list(range(1, 32))
    assert days["unwell"] == list(range(24, 32))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("ssl.keystore.location=",), "TLS needs ssl.keystore.location"),
        (("ssl.keystore.location=/nowhere",), "/nowhere cannot be read"),
        (("ssl.client.auth=required", "ssl.principal.mapping.rules=RULE:(/x/"), "no expression of RE2"),
        (("listener.name.out.ssl.client.auth=required",), "for a listener that this node does not have"),
        (("listener.name.ssl.max.connections=1",), "there is no setting"),
        (("ssl.keystore.type=JKS",), "files are in PEM here"),
    ],
)
def test_a_node_that_cannot_speak_tls_does_not_start_and_says_why(
    tmp_path: Path, settings: tuple[str, ...], words: str
) -> None:
    async def story(_: Site) -> None:
        raise AssertionError("it started")

    with pytest.raises(InvalidSetting, match=words):
        at_a_node(tmp_path, story, *SHORT, *settings)


def test_the_days_left_are_a_figure(tmp_path: Path) -> None:
    async def story(site: Site) -> None:
        figures = Figures()
        list(site.node._parts.certificates.collect(figures))
        ((_, left_s),) = figures.written.items()
        assert list(figures.written) == [("ropewalk_certificate_seconds_left", (str(site.keystore),))]
        assert left_s > 86_400

    at_a_node(tmp_path, story, *SHORT)
