"""One node process for the whole room, on a free port of the loopback, topics with names of their own, and crews.

`COMPAT_BOOTSTRAP=HOST:PORT` points the same tests at any other broker. Apache Kafka itself is the one to try when
a test and a node disagree: what Kafka does is what clients expect.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.crew import Crew
from tests.compat.node_process import NodeProcess, StartNode

AT_ONCE = (
    "--set",
    "group.initial.rebalance.delay.ms=0",
    "--set",
    "group.consumer.heartbeat.interval.ms=100",
    "--set",
    "group.consumer.session.timeout.ms=6000",
)
"""Groups begin without waiting for more members, and members hear of others soon: every test of them is seconds shorter."""

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
    return start("--data", str(tmp_path_factory.mktemp("data")), *AT_ONCE).bootstrap


@pytest.fixture
def topic() -> str:
    """A name that no other test uses; the topic itself is not there yet."""
    return f"topic-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def group(topic: str) -> str:
    return f"group-of-{topic}"


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


HireCrew = Callable[..., Crew]


@pytest.fixture(scope="session")
def hire(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HireCrew]:
    """`hire(kind)`: the crew of that client, which all tests share; `hire(kind, to_crash=True)`: one that they do not."""
    shared: dict[str, Crew] = {}
    with ExitStack() as crews:

        def hire(kind: str, *, to_crash: bool = False) -> Crew:
            if to_crash or kind not in shared:
                crew = Crew(kind, bootstrap, tmp_path_factory.mktemp("crew") / "log")
                crews.callback(crew.close)
                if to_crash:
                    return crew
                shared[kind] = crew
            return shared[kind]

        yield hire
