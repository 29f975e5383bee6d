"""Headers of proxies: what they say of clients, whatever their pieces, and who is believed."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import PROXY_HEADER_BYTES_MAX, PROXY_HEADER_MS_MAX, PROXY_HEADERS_MAX
from ropewalk.runtime.network import TcpNetwork
from ropewalk.runtime.proxy_header import SIGNATURE, ProxyHeader, parse_header
from ropewalk.runtime.tls import TlsProtocol
from ropewalk.sim.machines.world import World
from tests.runtime.test_runtime_tls import BufferedPeer, Peer, until
from tests.security.authority import authority

PORT = 9092
PROXY, STRANGER = "10.1.0.1", "10.2.0.1"
NETWORKS = (ip_network("10.1.0.0/16"), ip_network("fd00::/8"))
LINE = b"PROXY TCP4 192.0.2.7 192.0.2.10 51234 9092\r\n"


def binary(command: int, family: int, content: bytes) -> bytes:
    return SIGNATURE + bytes([command, family]) + len(content).to_bytes(2, "big") + content


def over_ipv4(host: str, port: int, more: bytes = b"") -> bytes:
    addresses = socket.inet_aton(host) + socket.inet_aton("192.0.2.10")
    return binary(0x21, 0x11, addresses + port.to_bytes(2, "big") + (9092).to_bytes(2, "big") + more)


def over_ipv6(host: str, port: int) -> bytes:
    addresses = socket.inet_pton(socket.AF_INET6, host) + bytes(16)
    return binary(0x21, 0x21, addresses + port.to_bytes(2, "big") + (9092).to_bytes(2, "big"))


HEADERS = [
    (LINE, ("192.0.2.7", 51234)),
    (b"PROXY TCP6 2001:db8::7 2001:DB8::1 1 2\r\n", ("2001:db8::7", 1)),
    (b"PROXY UNKNOWN\r\n", None),
    (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None),
    (over_ipv4("192.0.2.8", 40000), ("192.0.2.8", 40000)),
    (over_ipv4("192.0.2.8", 40000, b"\x20\x00\x05hello"), ("192.0.2.8", 40000)),
    (over_ipv6("2001:db8::9", 1), ("2001:db8::9", 1)),
    (binary(0x20, 0x00, b""), None),
    (binary(0x20, 0x11, bytes(12)), None),
    (binary(0x21, 0x31, bytes(216)), None),
]
REFUSED = [
    (b"GET / HTTP/1.1\r\n", "no PROXY header: it begins with 47 45 54"),
    (b"\x00\x00\x00\x10abcd", "no PROXY header"),
    (b"PROXY " + b"x" * 120, "more than 107 bytes"),
    (b"PROXY TCP4 192.0.2.7 192.0.2.10 51234\r\n", "does not name two addresses"),
    (b"PROXY UDP4 192.0.2.7 192.0.2.10 1 2\r\n", "does not name two addresses"),
    (b"PROXY TCP4 192.0.2.300 192.0.2.10 1 2\r\n", "an address that is none"),
    (b"PROXY TCP4 2001:db8::1 192.0.2.10 1 2\r\n", "of another family"),
    (b"PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n", "of another family"),
    (b"PROXY TCP4 192.0.2.7 192.0.2.10 70000 2\r\n", "a port that is none"),
    (b"PROXY TCP4 192.0.2.7 192.0.2.10 -1 2\r\n", "a port that is none"),
    (binary(0x22, 0x11, bytes(12)), "command 0x22"),
    (binary(0x11, 0x11, bytes(12)), "command 0x11"),
    (binary(0x21, 0x11, bytes(8)), "too short for its addresses"),
    (over_ipv4("192.0.2.8", 1, bytes(PROXY_HEADER_BYTES_MAX)), "are read at most"),
]


@pytest.mark.parametrize(("data", "client"), HEADERS)
def test_a_header_says_for_whom_it_comes_whatever_its_pieces(
    data: bytes, client: tuple[str, int] | None
) -> None:
    assert parse_header(data + b"what follows") == ProxyHeader(len(data), client)
    assert all(parse_header(data[:end]) is None for end in range(len(data)))


@pytest.mark.parametrize(("data", "words"), REFUSED)
def test_bytes_that_are_no_header_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        parse_header(data)


@given(
    st.sampled_from([b"", b"PROXY ", b"PROXY TCP4 ", SIGNATURE, SIGNATURE + b"\x21\x11"]),
    st.binary(max_size=300),
)
def test_whatever_comes_is_a_header_the_beginning_of_one_or_refused(beginning: bytes, rest: bytes) -> None:
    data = beginning + rest
    try:
        header = parse_header(data)
    except ProtocolError:
        return
    if header is None:
        assert len(data) < PROXY_HEADER_BYTES_MAX
    else:
        assert 0 < header.size_bytes <= len(data)
        assert header.client is None or 0 <= header.client[1] <= 65535


class Stage:
    def __init__(self, world: World) -> None:
        self.world = world
        self.accepted: list[Peer] = []

    async def listen(self, kind: type[Peer] = Peer, tls: Callable[[], Any] | None = None) -> None:
        def accept() -> Peer:
            self.accepted.append(kind())
            return self.accepted[-1]

        await self.world.network.host("node").listen(accept, "node", PORT, tls=tls, proxies=NETWORKS)

    async def connect(self, host: str) -> Peer:
        _, made = await self.world.network.host(host).connect(Peer, "node", PORT)
        assert isinstance(made, Peer)
        return made


Story = Callable[[Stage], Coroutine[Any, Any, None]]


def on_wires(story: Story) -> list[Any]:
    with capture_logs() as lines, World(1) as world:
        for name in ("node", PROXY, STRANGER):
            world.machine(name)
        world.run(story(Stage(world)), limit_s=60)
    return [
        (line.get("proxy"), line.get("reason")) for line in lines if line["event"] == "no client of a proxy"
    ]


@pytest.mark.parametrize("kind", [Peer, BufferedPeer])
@pytest.mark.parametrize(("header", "client"), HEADERS)
def test_a_connection_is_its_clients_and_nothing_behind_the_header_is_lost(
    kind: type[Peer], header: bytes, client: tuple[str, int] | None
) -> None:
    async def story(stage: Stage) -> None:
        await stage.listen(kind)
        proxy = await stage.connect(PROXY)
        sent = bytes(range(256)) * 20
        proxy.transport.write(header + sent)
        await until(lambda: bool(stage.accepted) and len(stage.accepted[0].received) == len(sent))
        (served,) = stage.accepted
        assert served.received == sent
        peername = served.transport.get_extra_info("peername")
        assert peername == client if client is not None else peername[0] == PROXY
        served.transport.write(b"answer")
        await until(lambda: proxy.received == b"answer")
        proxy.transport.close()
        await served.is_lost

    on_wires(story)


def test_under_tls_the_header_comes_first() -> None:
    async def story(stage: Stage) -> None:
        ours = authority()
        await stage.listen(tls=ours.server)

        class First(TlsProtocol):
            """What a proxy sends that passes TLS through."""

            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                transport.write(LINE)
                super().connection_made(transport)

        inner = Peer()
        _, made = await stage.world.network.host(PROXY).connect(
            lambda: First(inner, context=ours.client(), server_name="node"), "node", PORT
        )
        assert isinstance(made, First)
        assert made.shaken is not None
        await made.shaken
        made.face.write(b"secret")
        await until(lambda: bool(stage.accepted) and stage.accepted[0].received == b"secret")
        assert stage.accepted[0].transport.get_extra_info("peername") == ("192.0.2.7", 51234)

    on_wires(story)


def test_a_stranger_keeps_its_own_address_and_its_header_is_no_header() -> None:
    async def story(stage: Stage) -> None:
        await stage.listen()
        stranger = await stage.connect(STRANGER)
        stranger.transport.write(LINE)
        await until(lambda: bool(stage.accepted) and bool(stage.accepted[0].received))
        assert stage.accepted[0].received == LINE
        assert stage.accepted[0].transport.get_extra_info("peername")[0] == STRANGER

    assert on_wires(story) == []


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"\x00\x00\x00\x10abcd", "no PROXY header: it begins with 00 00 00 10"),
        (b"PROXY TCP4 192.0.2.7", f"no PROXY header within {PROXY_HEADER_MS_MAX} ms"),
        (b"", f"no PROXY header within {PROXY_HEADER_MS_MAX} ms"),
    ],
)
def test_a_proxy_that_says_nothing_of_its_client_is_refused_in_time(sent: bytes, words: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.listen()
        proxy = await stage.connect(PROXY)
        proxy.transport.write(sent)
        await proxy.is_lost
        assert stage.accepted == []

    ((host, reason),) = on_wires(story)
    assert host == PROXY
    assert reason.startswith(words)


def test_of_too_many_that_say_nothing_the_oldest_goes() -> None:
    async def story(stage: Stage) -> None:
        await stage.listen()
        waiting = [await stage.connect(PROXY) for _ in range(PROXY_HEADERS_MAX + 1)]
        await waiting[0].is_lost
        assert not waiting[1].is_lost.done()

    assert on_wires(story) == [(PROXY, f"more than {PROXY_HEADERS_MAX} headers were awaited")]


@pytest.mark.parametrize("kind", [Peer, BufferedPeer])
def test_it_is_so_on_a_real_network(kind: type[Peer]) -> None:
    async def story() -> None:
        accepted: list[Peer] = []

        def accept() -> Peer:
            accepted.append(kind())
            return accepted[-1]

        listener = await TcpNetwork().listen(accept, "127.0.0.1", 0, proxies=(ip_network("127.0.0.0/8"),))
        _, made = await TcpNetwork().connect(Peer, *listener.address)
        assert isinstance(made, Peer)
        made.transport.write(LINE + b"hello")
        await until(lambda: bool(accepted) and accepted[0].received == b"hello")
        accepted[0].transport.write(b"answer" * 100_000)
        await until(lambda: len(made.received) == 600_000)
        assert accepted[0].transport.get_extra_info("peername") == ("192.0.2.7", 51234)
        made.transport.close()
        await accepted[0].is_lost
        listener.stop()

    asyncio.run(asyncio.wait_for(story(), 60))
