"""One node process for the whole room, on a free port of the loopback, and topics with names of their own.

`COMPAT_BOOTSTRAP=HOST:PORT` points the same tests at any other broker. Apache Kafka itself is the one to try when
a test and a node disagree: what Kafka does is what clients expect.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

READY_WITHIN_S = 30
_numbers = itertools.count()


class NodeProcess(NamedTuple):
    bootstrap: str
    pid: int


StartNode = Callable[..., NodeProcess]


@pytest.fixture(scope="session")
def start_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartNode]:
    """Starts `ropewalk up ARGUMENTS` and waits until it is ready; all are stopped in the end and must stop cleanly."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> NodeProcess:
        directory = tmp_path_factory.mktemp("node")
        ready_file = directory / "ready.json"
        log_path = directory / "log"
        program = Path(sys.executable).with_name("ropewalk")
        command = [str(program), "up", "--kafka", "127.0.0.1:0", "--ready-file", str(ready_file), *arguments]
        with open(log_path, "wb") as log:
            process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=subprocess.STDOUT)
        processes.append(process)
        deadline_s = time.monotonic() + READY_WITHIN_S
        while not ready_file.exists():
            if process.poll() is not None or time.monotonic() > deadline_s:
                pytest.fail(f"the node did not become ready:\n{log_path.read_text()}")
            time.sleep(0.02)
        return NodeProcess(json.loads(ready_file.read_text())["kafka"][0], process.pid)

    yield start
    for process in processes:
        process.send_signal(signal.SIGTERM)
    assert [process.wait(READY_WITHIN_S) for process in processes] == [0] * len(processes)


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
