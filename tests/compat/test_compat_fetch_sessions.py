"""Which clients read in fetch sessions, and that they read all there is: the node counts, the clients are as they come."""

import urllib.request

import pytest

from tests.compat.clients import Aiokafka, Client, Confluent, KafkaPython, Message
from tests.compat.java_tools import class_path_of, run_java
from tests.compat.node_process import NodeProcess, StartNode

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

MESSAGES = [Message(b"%d" % number + b"." * 1000) for number in range(3000)]
"""More than any client asks for at once, so that it has to fetch again."""


@pytest.fixture(scope="module")
def node(start_node: StartNode) -> NodeProcess:
    return start_node("--memory", "--http", "127.0.0.1:0")


def fetches_in_session(node: NodeProcess) -> int:
    with urllib.request.urlopen(f"{node.http}/metrics") as answer:
        for line in answer.read().decode().splitlines():
            name, _, value = line.partition(" ")
            if name == "ropewalk_fetches_in_session_total":
                return int(float(value))
    raise AssertionError("the node does not tell of it")


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        pytest.param(KafkaPython, True, id="kafka-python uses them"),
        pytest.param(Confluent, False, id="librdkafka has none"),
        pytest.param(Aiokafka, False, id="aiokafka has none"),
    ],
)
def test_clients_read_everything_with_or_without_sessions(
    node: NodeProcess, topic: str, client: type[Client], expected: bool
) -> None:
    Confluent(node.bootstrap).produce(topic, MESSAGES)
    before = fetches_in_session(node)
    received = client(node.bootstrap).consume(topic, offset=0, count=len(MESSAGES))
    assert [message.value for message in received] == [message.value for message in MESSAGES]
    assert (fetches_in_session(node) > before) is expected


def test_the_java_consumer_reads_in_a_session(node: NodeProcess, topic: str) -> None:
    Confluent(node.bootstrap).produce(topic, MESSAGES)
    before = fetches_in_session(node)
    printed = run_java(
        class_path_of("ReadPartition"), "ReadPartition", node.bootstrap, topic, "0", str(len(MESSAGES))
    )
    assert len(printed.splitlines()) == len(MESSAGES)
    assert fetches_in_session(node) > before
