"""AWS's SDKs for Java and Go against a node that verifies signatures, where Java and Go are; both check every digest themselves."""

import itertools
import os

import pytest

from tests.compat.go_tools import built, run_go
from tests.compat.java_tools import run_java, sqs_class_path_of
from tests.compat.node_process import NodeProcess, StartNode

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(600)]

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
STEPS = [
    "found: true",
    "tags: {team=red}",
    "sent: true",
    "received: true",
    "count: 1",
    "hidden: true",
    "count: 2",
    "long poll: late",
    "purged: 403",
    "deleted: AWS.SimpleQueueService.NonExistentQueue",
    "deduplicated: true",
    "g0: [m0, m2, m4, m6, m8]",
    "g1: [m1, m3, m5, m7, m9]",
    "left: 0",
]
"""What the programs print, as Java writes maps and lists."""

_numbers = itertools.count()


@pytest.fixture(scope="module")
def guarded(start_node: StartNode, tmp_path_factory: pytest.TempPathFactory) -> NodeProcess:
    """A node that verifies signatures, with its data on disk."""
    keys = tmp_path_factory.mktemp("keys") / "keys.toml"
    keys.touch(mode=0o600)
    keys.write_text(f'[{KEY}]\nsecret = "{SECRET}"\n')
    data = str(tmp_path_factory.mktemp("data"))
    return start_node("--data", data, "--sqs", "127.0.0.1:0", "--set", f"sqs.credentials={keys}")


@pytest.fixture(scope="module")
def free(start_node: StartNode) -> NodeProcess:
    """A node for development: any key will do."""
    return start_node("--memory", "--sqs", "127.0.0.1:0")


@pytest.fixture(params=["guarded", "free"])
def node(request: pytest.FixtureRequest) -> NodeProcess:
    node: NodeProcess = request.getfixturevalue(request.param)
    return node


def arguments(node: NodeProcess) -> tuple[str, str, str, str]:
    return str(node.ready["sqs"][0]), KEY, SECRET, f"jobs-{os.getpid()}-{next(_numbers)}"


def expected(node: NodeProcess, guarded: NodeProcess) -> list[str]:
    is_guarded = node is guarded
    return [*STEPS, f"wrong secret: {'403 SignatureDoesNotMatch' if is_guarded else 'taken'}"]


def test_the_sdk_for_java_works(node: NodeProcess, guarded: NodeProcess) -> None:
    printed = run_java(sqs_class_path_of("SqsRounds"), "SqsRounds", *arguments(node))
    assert printed.splitlines() == expected(node, guarded)


def test_the_sdk_for_go_works(node: NodeProcess, guarded: NodeProcess) -> None:
    printed = run_go(built("sqs"), *arguments(node))
    assert printed.splitlines() == expected(node, guarded)
