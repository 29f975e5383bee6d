"""The pytest plugin: a node for the whole session, and a namespace on it for each test.

    ropewalk          a `Namespace`: `ropewalk.bootstrap`, `ropewalk.topic("orders")`
    kafka_bootstrap   the node's address, for code that wants nothing else

The node starts when the first test asks for it. Workers of pytest-xdist are processes, so each has its own.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ropewalk.testing import Cluster, Namespace


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("ropewalk").addoption(
        "--ropewalk-data",
        metavar="DIR",
        help="keep the data of the tests' node in DIR instead of in memory (with xdist, in DIR/WORKER)",
    )
    parser.addini(
        "ropewalk_settings",
        type="linelist",
        help="settings of the tests' node by Kafka's names, one KEY=VALUE per line",
    )


@pytest.fixture(scope="session")
def _ropewalk_cluster(pytestconfig: pytest.Config) -> "Iterator[Cluster]":
    from ropewalk.testing import Cluster  # late: most sessions of most projects never get here

    with Cluster(data=_data_path(pytestconfig), settings=_settings(pytestconfig)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_bootstrap(_ropewalk_cluster: "Cluster") -> str:
    """HOST:PORT of a node that speaks Kafka's protocol, shared by all tests of the session."""
    return _ropewalk_cluster.bootstrap


@pytest.fixture
def ropewalk(_ropewalk_cluster: "Cluster") -> "Iterator[Namespace]":
    """Topics of this test's own on the session's node; they are deleted after it."""
    from ropewalk.testing import Namespace

    namespace = Namespace(_ropewalk_cluster)
    yield namespace
    namespace.close()


def _data_path(config: pytest.Config) -> str | None:
    data: str | None = config.getoption("--ropewalk-data")
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if data is None or worker is None:
        return data
    return os.path.join(data, worker)


def _settings(config: pytest.Config) -> dict[str, str]:
    settings = {}
    for line in config.getini("ropewalk_settings"):
        name, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"ropewalk_settings: {line!r} is not KEY=VALUE")
        settings[name.strip()] = value.strip()
    return settings
