"""TLS over the simulated network, and over the loopback: what arrives, in which pieces, and who is let go."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs

from ropewalk.base.limits import TLS_HANDSHAKE_MS_MAX, TLS_HANDSHAKES_PER_HOST_MAX
from ropewalk.runtime.network import TcpNetwork
from ropewalk.sim.machines.world import World
from tests.security.authority import authority

PORT = 9093
OURS, OTHER = authority(), authority("other")


class Peer(asyncio.Protocol):
    """Collects what comes."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.received = bytearray()
        self.is_lost = asyncio.get_running_loop().create_future()
        self.is_ended = False
        self.stays_open = False
        self.on_data: Callable[[Peer], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.on_data is not None:
            self.on_data(self)

    def eof_received(self) -> bool:
        self.is_ended = True
        return self.stays_open

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost.set_result(error)


class BufferedPeer(Peer, asyncio.BufferedProtocol):
    """The same, into a small buffer of its own, as the Kafka door reads."""

    def __init__(self) -> None:
        Peer.__init__(self)
        self.buffer = bytearray(1000)

    def get_buffer(self, _: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self.buffer[:nbytes]))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


class Stage:
    def __init__(self, server: Any, client: Any, port: int) -> None:
        self._server_network, self._client_network = server, client
        self.accepted: list[Peer] = []
        self.kind: type[Peer] = Peer
        self.port = port
        self.host = "node"

    async def listen(self, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        def accept() -> Peer:
            self.accepted.append(self.kind())
            return self.accepted[-1]

        host = "node" if self.port else "127.0.0.1"
        listener = await self._server_network.listen(accept, host, self.port, tls=tls or OURS.server)
        if not self.port:
            self.host, self.port = listener.address

    async def connect(self, tls: Callable[[], ssl.SSLContext] | None = None) -> Peer:
        _, made = await self._client_network.connect(self.kind, self.host, self.port, tls=tls or OURS.client)
        assert isinstance(made, Peer)
        return made

    async def connect_plain(self) -> Peer:
        _, made = await self._client_network.connect(Peer, self.host, self.port)
        assert isinstance(made, Peer)
        return made


Story = Callable[[Stage], Coroutine[Any, Any, None]]


def on_wires(story: Story, *, limit_s: float = 300) -> None:
    with World(1) as world:
        world.machine("node")
        world.machine("client")
        stage = Stage(world.network.host("node"), world.network.host("client"), PORT)
        world.run(story(stage), limit_s=limit_s)


def on_loopback(story: Story) -> None:
    asyncio.run(asyncio.wait_for(story(Stage(TcpNetwork(), TcpNetwork(), 0)), 60))


@pytest.mark.parametrize("play", [on_wires, on_loopback])
@pytest.mark.parametrize("kind", [Peer, BufferedPeer])
def test_what_is_written_arrives_as_it_was_whatever_its_pieces(
    kind: type[Peer], play: Callable[[Story], None]
) -> None:
    sizes = [1, 5, 16_383, 16_384, 16_385, 3, 300_000, 0, 7, 40_000]
    chunks = [bytes([index]) * size for index, size in enumerate(sizes)]

    async def story(stage: Stage) -> None:
        stage.kind = kind
        await stage.listen()
        client = await stage.connect()
        client.transport.writelines(chunks)
        for chunk in chunks:
            client.transport.write(chunk)
        await until(lambda: len(stage.accepted[0].received) == 2 * sum(sizes))
        assert bytes(stage.accepted[0].received) == b"".join(chunks) * 2
        stage.accepted[0].transport.writelines([memoryview(chunk) for chunk in chunks])
        await until(lambda: len(client.received) == sum(sizes))
        assert bytes(client.received) == b"".join(chunks)
        client.transport.close()
        await stage.accepted[0].is_lost

    play(story)


@pytest.mark.parametrize("kind", [Peer, BufferedPeer])
def test_nothing_is_lost_when_reading_pauses_again_and_again(kind: type[Peer]) -> None:
    async def story(stage: Stage) -> None:
        stage.kind = kind
        await stage.listen()
        client = await stage.connect()
        server = stage.accepted[0]
        pause_count = 0

        def pause(peer: Peer) -> None:
            nonlocal pause_count
            pause_count += 1
            peer.transport.pause_reading()
            asyncio.get_running_loop().call_later(0.002, peer.transport.resume_reading)

        server.transport.write(b"!")
        await until(
            lambda: client.received == b"!"
        )  # whoever closes with something unread resets the connection
        server.on_data = pause
        sent = bytes(range(256)) * 800
        client.transport.write(sent)
        client.transport.close()
        await server.is_lost
        assert len(server.received) == len(sent)
        assert bytes(server.received) == sent
        assert server.is_ended
        assert pause_count > 5

    on_wires(story)


def test_what_was_asked_before_the_farewell_is_still_answered() -> None:
    async def story(stage: Stage) -> None:
        await stage.listen()
        client = await stage.connect()
        server = stage.accepted[0]
        server.stays_open = True
        client.transport.write(b"question")
        await until(lambda: server.received == b"question")
        client.transport.write_eof()
        await until(lambda: server.is_ended)
        server.transport.write(b"answer")
        await until(lambda: client.received == b"answer")
        server.transport.close()
        await server.is_lost

    on_wires(story)


@pytest.mark.parametrize(
    ("first", "called"),
    [
        (b"\x00\x00\x00\x20rest", "plain Kafka came"),
        (b"GET / HTTP/1.1\r\n\r\n", "plain HTTP came"),
        (b"POST / HTTP/1.1\r\n\r\n", "plain HTTP came"),
        (b"PROXY TCP4 1.2.3.4", "a PROXY header came"),
        (b"\r\n\r\n\x00\r\nQUIT\n", "a PROXY header came"),
        (b"\x99\x98\x97\x96", "something that begins with 99 98 97 96 came"),
    ],
)
def test_who_speaks_something_else_is_told_apart(first: bytes, called: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.listen()
        client = await stage.connect_plain()
        client.transport.write(first)
        await client.is_lost
        await stage.accepted[0].is_lost
        assert stage.accepted[0].received == b""

    with capture_logs() as lines:
        on_wires(story)
    (line,) = [line for line in lines if line["event"] == "no TLS with a client"]
    assert line["reason"] == f"{called}, where TLS is spoken"
    assert line["client"] == "client"


def test_a_hello_that_never_goes_on_is_let_go_in_time() -> None:
    async def story(stage: Stage) -> None:
        await stage.listen()
        client = await stage.connect_plain()
        client.transport.write(b"\x16\x03\x01\x02")
        began_s = asyncio.get_running_loop().time()
        await client.is_lost
        took_ms = (asyncio.get_running_loop().time() - began_s) * 1000
        assert TLS_HANDSHAKE_MS_MAX - 100 < took_ms < TLS_HANDSHAKE_MS_MAX + 1_000

    on_wires(story)


def test_of_too_many_handshakes_the_oldest_goes_and_a_finished_one_stays() -> None:
    async def story(stage: Stage) -> None:
        await stage.listen()
        settled = await stage.connect()
        strangers = [await stage.connect_plain() for _ in range(TLS_HANDSHAKES_PER_HOST_MAX + 2)]
        await strangers[0].is_lost
        await strangers[1].is_lost
        assert not strangers[2].is_lost.done()
        settled.transport.write(b"still here")
        await until(lambda: stage.accepted[0].received == b"still here")
        late = await stage.connect()
        late.transport.write(b"late")
        await until(lambda: stage.accepted[-1].received == b"late")

    on_wires(story)


def test_a_handshake_without_end_is_bounded() -> None:
    async def story(stage: Stage) -> None:
        await stage.listen()
        client = await stage.connect_plain()
        client.transport.write(b"\x16\x03\x01\x40\x00" + bytes(100_000))
        await client.is_lost

    on_wires(story)


@pytest.mark.parametrize(
    ("server", "client", "words"),
    [
        ("ours", "other", "unable to get local issuer certificate"),
        ("expired", "ours", "certificate has expired"),
        ("named", "ours", "Hostname mismatch"),
    ],
)
def test_who_cannot_prove_who_it_is_gets_no_connection(server: str, client: str, words: str) -> None:
    async def story(stage: Stage) -> None:
        contexts = {
            "ours": OURS.server,
            "expired": OURS.expired_server,
            "named": OURS.misnamed_server,
        }[server]
        await stage.listen(contexts)
        with pytest.raises(ssl.SSLCertVerificationError, match=words):
            await stage.connect({"ours": OURS, "other": OTHER}[client].client)
        await stage.accepted[0].is_lost

    on_wires(story)


def test_a_certificate_is_replaced_for_new_connections_alone() -> None:
    async def story(stage: Stage) -> None:
        contexts = [OTHER.server, OURS.server]
        current = [0]
        await stage.listen(lambda: contexts[current[0]]())
        former = await stage.connect(OTHER.client)
        current[0] = 1
        with pytest.raises(ssl.SSLCertVerificationError):
            await stage.connect(OTHER.client)
        await stage.connect()
        former.transport.write(b"as before")
        await until(lambda: stage.accepted[0].received == b"as before")

    on_wires(story)


def test_a_broken_record_ends_its_connection_alone() -> None:
    async def story(stage: Stage) -> None:
        await stage.listen()
        neighbour, client = await stage.connect(), await stage.connect()
        client.transport._protocol.transport.write(b"\x17\x03\x03\x00\x20" + bytes(32))
        await stage.accepted[1].is_lost
        assert stage.accepted[1].received == b""
        neighbour.transport.write(b"well")
        await until(lambda: stage.accepted[0].received == b"well")

    on_wires(story)


def test_a_client_whose_server_goes_away_in_the_handshake_hears_it() -> None:
    async def story(stage: Stage) -> None:
        def hang_up() -> asyncio.BaseProtocol:
            peer = Peer()
            peer.on_data = lambda peer: peer.transport.abort()
            return peer

        await stage._server_network.listen(hang_up, "node", PORT)
        with pytest.raises(OSError, match=r"reset|handshake|lost"):
            await stage.connect()

    on_wires(story)
