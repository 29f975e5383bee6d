"""One node process for the whole room, on a free port of the loopback, and topics with names of their own.

`COMPAT_BOOTSTRAP=HOST:PORT` points the same tests at any other broker. Apache Kafka itself is the one to try when
a test and a node disagree: what Kafka does is what clients expect.
"""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.node_process import NodeProcess, StartNode

_numbers = itertools.count()


@pytest.fixture(scope="session")
def nodes() -> Iterator[list[NodeProcess]]:
    """Every node that was started. Those that no test has stopped must run to the end, and stop cleanly then."""
    started: list[NodeProcess] = []
    yield started
    assert [node.log for node in started if not node.was_stopped and node.stop() != 0] == []


@pytest.fixture(scope="session")
def start_node(nodes: list[NodeProcess], tmp_path_factory: pytest.TempPathFactory) -> StartNode:
    def start(*arguments: str) -> NodeProcess:
        nodes.append(NodeProcess(tmp_path_factory.mktemp("node"), *arguments))
        return nodes[-1]

    return start


@pytest.fixture(autouse=True)
def _no_node_has_died(nodes: list[NodeProcess]) -> None:
    """When one has, the tests after it would only wait for answers that cannot come."""
    assert [node.log for node in nodes if node.has_died] == []


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the node that all tests share; its data is on disk, as a user's would be."""
    given = os.environ.get("COMPAT_BOOTSTRAP")
    if given:
        return given
    start: StartNode = request.getfixturevalue("start_node")
    return start("--data", str(tmp_path_factory.mktemp("data"))).bootstrap


@pytest.fixture
def topic() -> str:
    """A name that no other test uses; the topic itself is not there yet."""
    return f"topic-{os.getpid()}-{next(_numbers)}"


MakeTopic = Callable[..., str]


@pytest.fixture
def make_topic(bootstrap: str, topic: str) -> MakeTopic:
    """Creates the test's topic, with Kafka's names for its settings."""

    def make(partitions: int = 1, **settings: str) -> str:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        config = {name.replace("_", "."): value for name, value in settings.items()}
        new_topic = NewTopic(topic, partitions, 1, config=config)
        admin.create_topics([new_topic], request_timeout=10)[topic].result(10)
        return topic

    return make
