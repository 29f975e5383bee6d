"""Clients that mean harm or are broken: each gets a clear close or error, the node's memory stays bounded, and a
well-behaved client beside them notices nothing.

Requests are put together by hand here, so that nothing but the socket stands between a test and the node.
"""

import random
import select
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import confluent_kafka
import cramjam
import crc32c
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.clients import Confluent, Message
from tests.compat.node_process import NodeProcess, StartNode

pytestmark = pytest.mark.compat

MIB = 1 << 20
PATIENCE_S = 20
PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
CORRUPT_MESSAGE, UNSUPPORTED_VERSION, UNSUPPORTED_FOR_MESSAGE_FORMAT, INVALID_RECORD = 2, 35, 43, 87
NOT_A_BATCH = {CORRUPT_MESSAGE, UNSUPPORTED_FOR_MESSAGE_FORMAT, INVALID_RECORD}


@pytest.fixture(scope="module")
def node(start_node: StartNode, tmp_path_factory: pytest.TempPathFactory) -> NodeProcess:
    node = start_node("--data", str(tmp_path_factory.mktemp("data")))
    # Whatever is allocated or compiled at first use is not part of what the tests measure.
    client = Confluent(node.bootstrap)
    client.produce("warm", [Message(b"x" * 100_000)] * 50, codec="none")
    client.consume("warm", offset=0, count=50)
    return node


@pytest.fixture(autouse=True)
def neighbour(node: NodeProcess) -> Iterator[None]:
    """A producer that writes all the while and must never see an error, a lost connection or a long wait."""
    started, stop = threading.Event(), threading.Event()
    troubles: list[str] = []
    acknowledged: list[int] = []

    def on_delivery(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is None:
            acknowledged.append(message.offset() or 0)
        else:
            troubles.append(str(error))

    def work() -> None:
        settings: dict[str, str | int | float | bool | Callable[..., None] | None] = {
            "bootstrap.servers": node.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "message.timeout.ms": 5000,
            "error_cb": lambda error: troubles.append(str(error)),
        }
        producer = confluent_kafka.Producer(settings)
        while not stop.is_set():
            producer.produce("neighbour", b"good day", on_delivery=on_delivery)
            producer.flush(PATIENCE_S)
            started.set()
            stop.wait(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(PATIENCE_S)
    yield
    stop.set()
    thread.join(PATIENCE_S)
    assert troubles == []
    assert acknowledged == list(range(acknowledged[0], acknowledged[0] + len(acknowledged)))


@contextmanager
def memory_bounded(node: NodeProcess, growth_bytes_max: int) -> Iterator[None]:
    """The peak of the process's memory may rise by so much while the body runs."""
    Path(f"/proc/{node.pid}/clear_refs").write_text("5")  # resets the peak to the present value
    before = _memory_bytes(node, "VmRSS")
    yield
    assert _memory_bytes(node, "VmHWM") - before <= growth_bytes_max


def _memory_bytes(node: NodeProcess, field: str) -> int:
    for line in Path(f"/proc/{node.pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise AssertionError(f"the process has no {field}")


def _connect(node: NodeProcess) -> socket.socket:
    host, _, port = node.bootstrap.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_S)


def _request(api_key: int, version: int, body: bytes = b"", correlation_id: int = 7) -> bytes:
    return _framed(struct.pack(">hhih", api_key, version, correlation_id, -1) + body)


def _framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _answer(connection: socket.socket) -> bytes:
    """One frame without its length, which begins with the correlation id."""
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        data = connection.recv(size - len(received))
        assert data, f"the node closed the connection after {len(received)} of {size} bytes"
        received += data
    return bytes(received)


def _is_closed(connection: socket.socket) -> bool:
    """Whether the node ends the connection without a further answer; waits until it does one or the other."""
    try:
        return connection.recv(1) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True


METADATA_OF_NONE = struct.pack(">i", 0) + b"\0"
ONE_RECORD = b"\x0e\0\0\0\x01\x02a\0"  # seven bytes: no key, the value a, no headers
PRODUCE_HEADER = struct.pack(">hhih", PRODUCE, 7, 7, -1)
PRODUCE_START = struct.pack(">hhi", -1, -1, 1000)  # no transaction, acks=all, one second


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", 0), id="a frame of no bytes"),
        pytest.param(struct.pack(">i", -1), id="a negative length"),
        pytest.param(struct.pack(">i", -(2**31)), id="the most negative length"),
        pytest.param(struct.pack(">i", 2**31 - 1), id="two gibibytes announced"),
        pytest.param(struct.pack(">i", 100 * MIB + 1), id="one byte above socket.request.max.bytes"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512), id="TLS"),
        pytest.param(_framed(b"\0"), id="a header of one byte"),
        pytest.param(_request(9999, 0), id="an API key that nobody knows"),
        pytest.param(_request(-1, 0), id="a negative API key"),
        pytest.param(_request(METADATA, 99), id="a version that nobody knows"),
        pytest.param(_request(METADATA, -1), id="a negative version"),
        pytest.param(
            _request(METADATA, 4, struct.pack(">i", 2**31 - 1)), id="an array of two thousand million"
        ),
        pytest.param(_request(METADATA, 4, struct.pack(">i", -2)), id="an array of a negative length"),
        pytest.param(_request(METADATA, 4, struct.pack(">ih", 1, -5)), id="a text of a negative length"),
        pytest.param(
            _request(METADATA, 4, struct.pack(">ih", 1, 3) + b"\xff\xfe\xfd\0"), id="a text not in UTF-8"
        ),
        pytest.param(
            _request(METADATA, 9, b"\0" + b"\xff" * 12), id="a variable-length integer without an end"
        ),
        pytest.param(
            _request(METADATA, 9, b"\0\xff\xff\xff\xff\x07"), id="a compact array of a thousand million"
        ),
        pytest.param(
            _request(
                PRODUCE,
                3,
                PRODUCE_START + struct.pack(">i", 1) + _text("t") + struct.pack(">iii", 1, 0, 2**31 - 1),
            ),
            id="a record set longer than its frame",
        ),
    ],
)
def test_bytes_that_are_not_the_protocol_end_the_connection(node: NodeProcess, data: bytes) -> None:
    with memory_bounded(node, 32 * MIB), _connect(node) as connection:
        connection.sendall(data)
        assert _is_closed(connection)


def test_every_truncation_of_a_request_ends_the_connection(node: NodeProcess) -> None:
    topics = struct.pack(">i", 2) + _text("first") + _text("second") + b"\0"
    whole = _request(METADATA, 4, topics)[4:]
    for size in range(1, len(whole)):
        with _connect(node) as connection:
            connection.sendall(_framed(whole[:size]))
            assert _is_closed(connection), f"{size} of {len(whole)} bytes"


def test_a_frame_that_never_ends_is_dropped_when_the_client_stops_sending(node: NodeProcess) -> None:
    whole = _request(API_VERSIONS, 0)
    for size in range(len(whole)):
        with _connect(node) as connection:
            connection.sendall(whole[:size])
            connection.shutdown(socket.SHUT_WR)
            assert _is_closed(connection), f"{size} of {len(whole)} bytes"


def test_random_bytes_are_closed_or_answered_and_never_outlive_their_sender(node: NodeProcess) -> None:
    rng = random.Random(20261115)
    with memory_bounded(node, 64 * MIB):
        for _ in range(300):
            content = rng.randbytes(rng.choice([1, 4, 10, 100, 5000]))
            # A third of them arrive as frames, and a third of them as requests that exist.
            shape = rng.randrange(3)
            if shape == 1:
                content = _framed(content)
            elif shape == 2:
                content = _request(rng.choice([0, 1, 2, 3, 18, 19, 20, 22, 32]), rng.randrange(10), content)
            with _connect(node) as connection:
                try:
                    connection.sendall(content)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass  # an error in the body is an answer too; what matters is that it ends
                except TimeoutError:
                    raise
                except OSError:
                    pass  # closed before everything was sent


def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest_layout(node: NodeProcess) -> None:
    with _connect(node) as connection:
        connection.sendall(_request(API_VERSIONS, 99, b"\0" + b"whatever comes", correlation_id=41))
        correlation_id, error_code, count, api_key, oldest, _ = struct.unpack(">ihihhh", _answer(connection))
        assert (correlation_id, error_code, count, api_key) == (41, UNSUPPORTED_VERSION, 1, API_VERSIONS)
        connection.sendall(_request(API_VERSIONS, oldest, correlation_id=42))
        assert struct.unpack_from(">ih", _answer(connection)) == (42, 0)


def test_bytes_behind_a_request_are_ignored_as_kafka_does(node: NodeProcess) -> None:
    """librdkafka 2.16 puts three of them behind its question for all topics."""
    with _connect(node) as connection:
        connection.sendall(_request(METADATA, 4, METADATA_OF_NONE + b"\0\0\0"))
        assert struct.unpack_from(">i", _answer(connection)) == (7,)


def test_announcing_much_costs_the_node_nothing(node: NodeProcess) -> None:
    with memory_bounded(node, 64 * MIB), ExitStack() as stack:
        for _ in range(200):
            connection = stack.enter_context(_connect(node))
            connection.sendall(struct.pack(">i", 100 * MIB) + PRODUCE_HEADER)
        _expect_service(node)


def test_slow_writers_are_served_when_their_requests_are_whole(node: NodeProcess) -> None:
    request = _request(METADATA, 4, METADATA_OF_NONE)
    with ExitStack() as stack:
        connections = [stack.enter_context(_connect(node)) for _ in range(30)]
        for connection in connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for position in range(len(request)):
            for connection in connections:
                connection.sendall(request[position : position + 1])
        for connection in connections:
            assert struct.unpack_from(">i", _answer(connection)) == (7,)


def test_a_client_that_does_not_read_is_not_read_either(node: NodeProcess) -> None:
    """Each of the requests is answered with five megabytes: together a hundred times what the node may hold."""
    body = struct.pack(">iiiib", -1, 0, 1, 55 * MIB, 0)
    body += struct.pack(">i", 1) + _text("warm") + struct.pack(">iiqi", 1, 0, 0, 55 * MIB)
    with memory_bounded(node, 160 * MIB), _connect(node) as connection:
        pipelined = b"".join(_request(FETCH, 4, body, correlation_id) for correlation_id in range(10_000))
        connection.sendall(pipelined[: len(pipelined) // 10])
        _send_until_it_blocks(connection, pipelined[len(pipelined) // 10 :])
        _expect_service(node)
        for correlation_id in range(20):  # whoever begins to read gets everything, in order
            assert struct.unpack_from(">i", _answer(connection)) == (correlation_id,)


def test_pipelined_requests_are_all_answered_in_order(node: NodeProcess) -> None:
    count = 10_000
    with _connect(node) as connection:
        requests = b"".join(_request(API_VERSIONS, 0, correlation_id=number) for number in range(count))
        sender = threading.Thread(target=connection.sendall, args=(requests,))
        sender.start()
        for number in range(count):
            assert struct.unpack_from(">i", _answer(connection)) == (number,)
        sender.join(PATIENCE_S)


def test_large_frames_of_many_clients_wait_for_room(node: NodeProcess) -> None:
    """Ten frames of ninety megabytes are more than the node may hold; none of them is ever finished."""
    piece = bytes(4 * MIB)
    with memory_bounded(node, 700 * MIB), ExitStack() as stack:
        for _ in range(10):
            connection = stack.enter_context(_connect(node))
            connection.sendall(struct.pack(">i", 90 * MIB) + PRODUCE_HEADER)
            _send_until_it_blocks(connection, piece * 22)
        _expect_service(node)


def test_a_half_closed_connection_still_gets_its_answers(node: NodeProcess) -> None:
    with _connect(node) as connection:
        connection.sendall(
            _request(API_VERSIONS, 0, correlation_id=1) + _request(METADATA, 4, METADATA_OF_NONE)
        )
        connection.shutdown(socket.SHUT_WR)
        assert struct.unpack_from(">i", _answer(connection)) == (1,)
        assert struct.unpack_from(">i", _answer(connection)) == (7,)
        assert _is_closed(connection)


def test_clients_that_vanish_in_the_middle_of_an_answer_leave_nothing_behind(node: NodeProcess) -> None:
    body = struct.pack(">iiiib", -1, 30_000, 1, 55 * MIB, 0)
    reading = body + struct.pack(">i", 1) + _text("warm") + struct.pack(">iiqi", 1, 0, 0, 55 * MIB)
    waiting = body + struct.pack(">i", 1) + _text("warm") + struct.pack(">iiqi", 1, 0, 50, 55 * MIB)
    with memory_bounded(node, 160 * MIB):
        for number in range(100):
            connection = _connect(node)
            connection.sendall(_request(FETCH, 4, reading if number % 2 else waiting))
            if number % 2:
                connection.recv(10)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()  # as a reset
    _expect_service(node)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(b"", id="no batch at all"),
        pytest.param(b"\0" * 60, id="less than a header"),
        pytest.param(b"\0" * 200, id="zeros"),
        pytest.param(random.Random(1).randbytes(500), id="noise"),
    ],
)
def test_a_bad_batch_is_an_error_of_its_partition_and_the_connection_goes_on(
    node: NodeProcess, records: bytes
) -> None:
    with _connect(node) as connection:
        assert _produce(connection, "warm", records) in NOT_A_BATCH
        assert _produce(connection, "warm", _batch(ONE_RECORD)) == 0


def test_a_batch_with_one_flipped_bit_is_refused(node: NodeProcess) -> None:
    batch = bytearray(_batch(ONE_RECORD))
    batch[-2] ^= 1
    with _connect(node) as connection:
        assert _produce(connection, "warm", bytes(batch)) == CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_batch_that_opens_to_four_hundred_megabytes_is_refused_without_being_opened_whole(
    node: NodeProcess, codec: str
) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    topic = f"compacted-{codec}"  # whose records the node has to look into for their keys
    new_topic = NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([new_topic])[topic].result(PATIENCE_S)
    bomb, attribute = (_gzip_of_zeros(), 1) if codec == "gzip" else (_zstd_of_zeros(), 4)
    with memory_bounded(node, 320 * MIB), _connect(node) as connection:
        assert _produce(connection, topic, _batch(bomb, attributes=attribute)) in NOT_A_BATCH


def test_connections_are_counted_and_silent_ones_closed(start_node: StartNode) -> None:
    strict = start_node("--memory", "--set", "max.connections=5", "--set", "connections.max.idle.ms=1000")
    with ExitStack() as stack:
        accepted = [stack.enter_context(_connect(strict)) for _ in range(5)]
        for connection in accepted:
            connection.sendall(_request(API_VERSIONS, 0))
            _answer(connection)
        assert _is_closed(stack.enter_context(_connect(strict)))
        accepted[0].sendall(b"\0")  # half a frame is silence too
        assert all(_is_closed(connection) for connection in accepted)
    _expect_service(strict)


def _produce(connection: socket.socket, topic: str, records: bytes) -> int:
    """Writes to partition 0 and answers with its error code."""
    body = (
        PRODUCE_START
        + struct.pack(">i", 1)
        + _text(topic)
        + struct.pack(">iii", 1, 0, len(records))
        + records
    )
    connection.sendall(_request(PRODUCE, 7, body))
    answer = _answer(connection)
    position = 4 + 4 + len(_text(topic)) + 4
    partition, error_code = struct.unpack_from(">ih", answer, position)
    assert partition == 0
    return int(error_code)


def _batch(records: bytes, *, attributes: int = 0) -> bytes:
    """A version 2 batch of one record, made at the beginning of time, with a right checksum."""
    content = struct.pack(">hiqqqhii", attributes, 0, 0, 0, -1, -1, -1, 1) + records
    return struct.pack(">qiibI", 0, 9 + len(content), -1, 2, crc32c.crc32c(content)) + content


def _gzip_of_zeros() -> bytes:
    compressor = zlib.compressobj(6, wbits=31)
    return b"".join([*(compressor.compress(bytes(MIB)) for _ in range(400)), compressor.flush()])


def _zstd_of_zeros() -> bytes:
    compressor = cramjam.zstd.Compressor()
    for _ in range(400):
        compressor.compress(bytes(MIB))
    return bytes(compressor.finish())


def _send_until_it_blocks(connection: socket.socket, data: bytes) -> None:
    """Sends until the node has taken nothing for half a second."""
    connection.setblocking(False)
    view = memoryview(data)
    while view and select.select([], [connection], [], 0.5)[1]:
        view = view[connection.send(view) :]
    connection.settimeout(PATIENCE_S)


def _expect_service(node: NodeProcess) -> None:
    with _connect(node) as connection:
        connection.sendall(_request(METADATA, 4, METADATA_OF_NONE))
        assert struct.unpack_from(">i", _answer(connection)) == (7,)
