"""A compacted topic as its users see it: it shrinks, the last value of every key stays, and every client gets past what is gone."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ropewalk.records.batch import HEADER_BYTES
from tests.compat.clients import CLIENTS, Client, Confluent, Kcat, Message
from tests.compat.node_process import StartNode

pytestmark = pytest.mark.compat

KEYS = [b"key-%d" % number for number in range(5)]
SEGMENT_BYTES = 1 << 20
PATIENCE_S = 60


class Node:
    def __init__(self, bootstrap: str, data: Path) -> None:
        self.bootstrap = bootstrap
        self._data = data

    def create(self, topic: str, **settings: str) -> None:
        config = {name.replace("_", "."): value for name, value in settings.items()}
        new_topic = NewTopic(topic, 1, 1, config={"cleanup.policy": "compact", **config})
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([new_topic])[topic].result(PATIENCE_S)

    def sizes_of(self, topic: str) -> list[int]:
        """Bytes of every segment of the topic; files may go while they are looked at."""
        return [_size(path) for path in sorted((self._data / f"{topic}-0").glob("*.log"))]


@pytest.fixture(scope="module")
def node(start_node: StartNode, tmp_path_factory: pytest.TempPathFactory) -> Node:
    data = tmp_path_factory.mktemp("compacted")
    return Node(start_node("--data", str(data), "--set", "log.cleaner.backoff.ms=100").bootstrap, data)


@pytest.fixture(scope="module")
def users(node: Node) -> dict[int, Message]:
    """A topic of which only the last round is left, and a last record in the active segment."""
    node.create("users", segment_bytes=str(SEGMENT_BYTES), min_cleanable_dirty_ratio="0.01")
    client = Confluent(node.bootstrap)
    for number in range(12):
        messages = [Message(b"%05d" % number + b"v" * 8000, key) for _ in range(5) for key in KEYS]
        client.produce("users", messages, codec="lz4" if number % 2 else "none", idempotent=True)
    client.produce("users", [Message(None, KEYS[0]), Message(b"last" + bytes(900_000), b"filler")])
    client.produce("users", [Message(b"last" + bytes(900_000), b"filler")])
    left = {
        **{295 + number: Message(b"00011" + b"v" * 8000, key) for number, key in enumerate(KEYS) if number},
        300: Message(None, KEYS[0]),
        301: Message(b"last" + bytes(900_000), b"filler"),
        302: Message(b"last" + bytes(900_000), b"filler"),
    }
    # A pass may have begun before the last record was there; only another one ends it.
    _wait_until(
        lambda: (
            {message.offset for message in client.consume("users", offset=0, count=len(left))} == set(left)
        )
    )
    return left


@pytest.fixture(scope="module")
def emptied(node: Node) -> Message:
    """A topic whose closed segments hold nothing any more, and its only record, at offset 121."""
    node.create(
        "emptied", segment_bytes=str(SEGMENT_BYTES), min_cleanable_dirty_ratio="0.01", delete_retention_ms="0"
    )
    client = Confluent(node.bootstrap)
    client.produce("emptied", [Message(b"v" * 9000, b"k") for _ in range(120)])
    client.produce("emptied", [Message(None, b"k")])
    only = Message(b"only" + bytes(1_000_000), b"l")
    client.produce("emptied", [only])
    _wait_until(lambda: node.sizes_of("emptied")[:-1] == [HEADER_BYTES])
    return only


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest, node: Node) -> Client:
    if request.param is Kcat and shutil.which("kcat") is None:
        pytest.skip("kcat is missing (Debian: kcat)")
    made: Client = request.param(node.bootstrap)
    return made


@pytest.mark.parametrize("start", [0, 123, 299])
def test_every_client_reads_what_is_left_of_a_compacted_topic(
    client: Client, users: dict[int, Message], start: int
) -> None:
    wanted = {offset: message for offset, message in users.items() if offset >= start}
    found = client.consume("users", offset=start, count=len(wanted))
    assert {message.offset: (message.key, message.value) for message in found} == {
        offset: (message.key, message.value) for offset, message in wanted.items()
    }


def test_every_client_gets_past_segments_of_which_nothing_is_left(client: Client, emptied: Message) -> None:
    (found,) = client.consume("emptied", offset=0, count=1)
    assert (found.offset, found.key, found.value) == (121, emptied.key, emptied.value)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, "the topic was not compacted in time"
        time.sleep(0.05)
