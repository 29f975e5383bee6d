"""The pytest plugin: a node for the whole session, and a namespace on it for each test.

    ropewalk          a `Namespace`: `ropewalk.bootstrap`, `ropewalk.topic("orders")`, `ropewalk.queue("jobs")`
    kafka_bootstrap   the node's address, for code that wants nothing else
    sqs_endpoint      the address of its SQS API
    sqs_environment   the same, with keys that do, in the variables that AWS's libraries read

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


@pytest.fixture(scope="session")
def sqs_endpoint(_ropewalk_cluster: "Cluster") -> str:
    """http://HOST:PORT of the SQS API of the same node."""
    return _ropewalk_cluster.sqs


@pytest.fixture
def sqs_environment(sqs_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, and for as long as the test runs `boto3.client("sqs")` and its like find it without being told."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", sqs_endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    return sqs_endpoint


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
