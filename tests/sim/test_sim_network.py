"""The network: what TCP promises, what it does not, and every way it can fail."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.ports import Listener, Ports
from ropewalk.sim.machines.network import Weather
from ropewalk.sim.machines.transport import WINDOW_BYTES, SimulatedTransport
from ropewalk.sim.machines.world import Machine, World

T = TypeVar("T")
PORT = 9092


class Recorder(asyncio.Protocol):
    """Writes down everything it is told."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.received = bytearray()
        self.read_sizes: list[int] = []
        self.events: list[str] = []
        self.stay_open_after_eof = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.read_sizes.append(len(data))

    def eof_received(self) -> bool:
        self.events.append("eof")
        return self.stay_open_after_eof

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append(f"lost {type(exc).__name__}" if exc else "lost")

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")


class BufferedRecorder(asyncio.BufferedProtocol):
    """Offers a small buffer that it uses again and again, as a frame reader does."""

    def __init__(self, buffer_bytes: int) -> None:
        self._buffer = bytearray(buffer_bytes)
        self.received = bytearray()
        self.read_sizes: list[int] = []

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        assert 0 < nbytes <= len(self._buffer)
        self.received += self._buffer[:nbytes]
        self.read_sizes.append(nbytes)


class Net:
    """A machine `node` that listens, and a connection to it from the client host."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fabric = world.network
        self.node: Machine = world.machine("node")
        self.servers: list[Recorder] = []
        self.listener: Listener

    async def listen(self, factory: Callable[[], asyncio.BaseProtocol] | None = None) -> None:
        async def main(ports: Ports) -> Listener:
            return await ports.network.listen(factory or self._serve, "127.0.0.1", PORT)

        self.listener = await self.node.start(main)

    def _serve(self) -> Recorder:
        self.servers.append(Recorder())
        return self.servers[-1]

    async def connect(self) -> tuple[Recorder, Recorder]:
        _, client = await self.fabric.host("client").connect(Recorder, "node", PORT)
        assert isinstance(client, Recorder)
        await asyncio.sleep(0)
        return client, self.servers[-1]


def run(main: Callable[[Net], Coroutine[Any, Any, T]], seed: int = 1, weather: Weather | None = None) -> T:
    with World(seed) as world:
        if weather is not None:
            world.network.weather = weather
        return world.run(main(Net(world)), limit_s=2000)


@given(st.lists(st.binary(min_size=1, max_size=3000), max_size=15), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_bytes_arrive_whole_and_in_order_in_both_directions(writes: list[bytes], seed: int) -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        for data in writes:
            client.transport.write(data)
            server.transport.writelines([data[::-1], b"!"])
        await asyncio.sleep(10)
        assert server.received == b"".join(writes)
        assert client.received == b"".join(data[::-1] + b"!" for data in writes)

    run(main, seed)


@pytest.mark.parametrize("buffer_bytes", [1, 7, 4096, 1 << 20])
def test_a_buffered_protocol_is_fed_through_its_own_buffer(buffer_bytes: int) -> None:
    sent = bytes(index % 251 for index in range(3000))

    async def main(net: Net) -> None:
        receiver = BufferedRecorder(buffer_bytes)
        await net.listen(lambda: receiver)
        _, client = await net.fabric.host("client").connect(Recorder, "node", PORT)
        assert isinstance(client, Recorder)
        client.transport.write(sent)
        await asyncio.sleep(100)
        assert receiver.received == sent
        assert max(receiver.read_sizes) <= buffer_bytes

    run(main)


def test_reads_are_sometimes_whole_sometimes_short_sometimes_one_byte() -> None:
    sizes: set[int] = set()

    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        for _ in range(100):
            client.transport.write(b"x" * 1000)
            await asyncio.sleep(1)
        sizes.update(server.read_sizes)

    run(main)
    assert 1 in sizes
    assert 1000 in sizes
    assert len(sizes) > 10


def test_latency_has_a_tail() -> None:
    async def main(net: Net) -> list[float]:
        return sorted(net.fabric.draw_latency_s() for _ in range(2000))

    latencies = run(main)
    assert latencies[0] >= 0.0001
    assert latencies[1000] < 0.001
    assert latencies[-1] > 0.01


def test_a_slow_reader_fills_the_window_and_pauses_the_writer() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        server.transport.pause_reading()
        client.transport.set_write_buffer_limits(high=10_000)
        client.transport.write(b"x" * WINDOW_BYTES)
        assert client.events == ["made"]
        client.transport.write(b"y" * 10_001)
        assert client.events == ["made", "pause"]
        assert client.transport.get_write_buffer_size() == 10_001
        await asyncio.sleep(60)
        assert not server.received
        server.transport.resume_reading()
        await asyncio.sleep(60)
        assert client.events == ["made", "pause", "resume"]
        assert client.transport.get_write_buffer_size() == 0
        assert server.received == b"x" * WINDOW_BYTES + b"y" * 10_001

    run(main)


def test_close_sends_what_was_written_then_ends_both_sides() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        client.transport.write(b"last words" * 50_000)
        client.transport.close()
        client.transport.write(b"too late")
        assert client.transport.is_closing()
        await asyncio.sleep(10)
        assert server.received == b"last words" * 50_000
        assert server.events == ["made", "eof", "lost"]
        assert client.events[0] == "made"
        assert client.events[-1] == "lost"

    run(main)


def test_a_half_closed_connection_still_carries_the_answer() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        server.stay_open_after_eof = True
        client.transport.write(b"question")
        client.transport.write_eof()
        await asyncio.sleep(1)
        assert server.events == ["made", "eof"]
        server.transport.write(b"answer")
        server.transport.close()
        await asyncio.sleep(1)
        assert client.received == b"answer"
        assert client.events == ["made", "eof", "lost"]

    run(main)


def test_abort_resets_the_peer() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        client.transport.abort()
        await asyncio.sleep(1)
        assert client.events == ["made", "lost"]
        assert server.events == ["made", "lost ConnectionResetError"]

    run(main)


def test_what_was_sent_before_an_abort_may_arrive_late_with_the_reset_behind_it() -> None:
    async def main(net: Net) -> None:
        net.fabric.weather = Weather(late_probability=1.0)
        await net.listen()
        client, server = await net.connect()
        (connection,) = net.fabric.connections()
        source, target = (connection.local[0], connection.remote[0])
        net.fabric.partition(source, target)
        client.transport.write(b"an order" * 1000)
        client.transport.abort()
        await asyncio.sleep(5)
        assert client.events == ["made", "lost"]
        assert server.events == ["made"]
        assert not server.received
        net.fabric.mend_all()
        await asyncio.sleep(5)
        assert server.received == b"an order" * 1000
        assert server.events == ["made", "lost ConnectionResetError"]
        assert net.fabric.connections() == []

    run(main)


def test_a_reset_from_between_is_seen_by_both() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        client.transport.write(b"lost")
        (connection,) = net.fabric.connections()
        net.fabric.reset(connection)
        await asyncio.sleep(1)
        assert client.events == server.events == ["made", "lost ConnectionResetError"]
        assert not server.received
        assert net.fabric.connections() == []

    run(main)


def test_writing_to_a_side_that_closed_is_answered_with_a_reset() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        client.stay_open_after_eof = True
        server.transport.close()
        await asyncio.sleep(1)
        client.transport.write(b"anyone there?")
        await asyncio.sleep(1)
        assert client.events == ["made", "eof", "lost ConnectionResetError"]

    run(main)


def test_a_one_way_cut_holds_one_direction_and_loses_nothing() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        net.fabric.cut("client", "node")
        client.transport.write(b"held")
        server.transport.write(b"passes")
        await asyncio.sleep(60)
        assert not server.received
        assert client.received == b"passes"
        net.fabric.mend("client", "node")
        await asyncio.sleep(10)
        assert server.received == b"held"

    run(main)


def test_nobody_can_connect_through_a_partition_until_it_is_mended() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        net.fabric.partition("client", "node")
        net.world.loop.call_later(5, net.fabric.mend_all)
        await net.connect()
        assert 5 < net.world.now_s < 10
        net.fabric.cut("node", "client")
        with pytest.raises(TimeoutError):
            await net.connect()

    run(main)


def test_nobody_listens() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        with pytest.raises(ConnectionRefusedError):
            await net.fabric.host("client").connect(Recorder, "node", PORT + 1)
        client, _ = await net.connect()
        net.listener.stop()
        with pytest.raises(ConnectionRefusedError):
            await net.connect()
        client.transport.write(b"connections already made live on")
        await asyncio.sleep(1)
        assert net.servers[0].received

    run(main)


def test_a_port_is_taken_once_and_port_0_is_any() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        assert net.listener.address == ("node", PORT)
        here = net.fabric.host("node")
        with pytest.raises(OSError, match="in use"):
            await here.listen(Recorder, "0.0.0.0", PORT)
        with pytest.raises(OSError, match="not an address"):
            await here.listen(Recorder, "elsewhere", PORT)
        ports = {(await here.listen(Recorder, "node", 0)).address[1] for _ in range(3)}
        assert len(ports) == 3
        assert 0 not in ports

    run(main)


def test_kill_9_closes_the_connections_of_the_process_and_its_listeners() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        net.node.kill()
        await asyncio.sleep(1)
        assert client.events == ["made", "eof", "lost"]
        assert server.events == ["made"], "a dead process is told nothing"
        with pytest.raises(ConnectionRefusedError):
            await net.connect()

    run(main)


def test_kill_9_with_unread_bytes_resets() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        server.transport.pause_reading()
        client.transport.write(b"unread")
        await asyncio.sleep(1)
        net.node.kill()
        await asyncio.sleep(1)
        assert client.events == ["made", "lost ConnectionResetError"]

    run(main)


@pytest.mark.parametrize("seed", range(5))
def test_a_power_cut_leaves_a_half_open_connection(seed: int) -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, _ = await net.connect()
        net.node.cut_power()
        await asyncio.sleep(600)
        assert client.events == ["made"], "silence tells nothing"
        client.transport.write(b"anyone there?")
        await asyncio.sleep(60)
        assert client.events == ["made"], "a machine without power does not even reset"
        await net.listen()
        await asyncio.sleep(60)
        assert client.events == ["made", "lost ConnectionResetError"], "the next life knows nothing of it"

    run(main, seed)


def test_a_black_hole_swallows_both_directions_until_mended() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        net.fabric.blacken(net.fabric.connections()[0])
        client.transport.write(b"one")
        server.transport.write(b"two")
        await asyncio.sleep(60)
        assert not server.received
        assert not client.received
        net.fabric.mend_all()
        await asyncio.sleep(10)
        assert server.received == b"one"
        assert client.received == b"two"

    run(main)


def test_streams_of_the_standard_library_run_unchanged() -> None:
    async def main(net: Net) -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                writer.write(line.upper())
                await writer.drain()
            writer.close()

        async def serve(ports: Ports) -> asyncio.AbstractServer:
            return await asyncio.start_server(echo, "127.0.0.1", 7)

        await net.node.start(serve)
        reader, writer = await asyncio.open_connection("node", 7)
        for number in range(20):
            writer.write(f"line {number}\n".encode())
            assert await reader.readline() == f"LINE {number}\n".encode()
        writer.close()
        await writer.wait_closed()

    run(main)


def test_a_transport_tells_where_it_leads() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        assert isinstance(client.transport, SimulatedTransport)
        assert client.transport.get_extra_info("peername") == ("node", PORT)
        assert server.transport.get_extra_info("peername") == client.transport.get_extra_info("sockname")
        assert client.transport.get_extra_info("socket") is None

    run(main)


def test_the_caller_may_reuse_its_buffer_after_a_write() -> None:
    async def main(net: Net) -> None:
        await net.listen()
        client, server = await net.connect()
        buffer = bytearray(b"first")
        client.transport.write(memoryview(buffer))
        buffer[:] = b"later"
        await asyncio.sleep(1)
        assert server.received == b"first"

    run(main)
