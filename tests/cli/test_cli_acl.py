"""`ropewalk acl` as a user meets it, against a node that decides by rules."""

import json
from collections.abc import Iterator

import pytest

from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.testing import Cluster
from tests.cli.conftest import Ropewalk
from tests.cli.test_cli_commands import lines
from tests.compat.node_process import NodeProcess

ON = (
    *("--memory", "--sqs", "none"),
    *("--set", f"authorizer.class.name={STANDARD_AUTHORIZER}"),
    *("--set", "super.users=User:ANONYMOUS;User:root"),
)


@pytest.fixture(scope="module")
def deciding_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    process = NodeProcess(tmp_path_factory.mktemp("node"), *ON)
    yield process.bootstrap
    assert process.stop() == 0


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, ropewalk: Ropewalk, deciding_node: str) -> None:
    """After `ropewalk`, which clears the environment."""
    monkeypatch.setenv("ROPEWALK_BOOTSTRAP", deciding_node)


@pytest.mark.usefixtures("node")
def test_rules_are_added_listed_asked_and_removed(ropewalk: Ropewalk) -> None:
    header = ["PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "HOST"]
    added = ropewalk("acl", "add", "alice", "read", "topic:orders")
    assert lines(added.stdout) == [header, ["User:alice", "allow", "read", "topic:orders", "*"]]
    ropewalk("acl", "add", "*", "all", "topic:ord", "--prefix", "--deny", "--host", "10.0.0.9")
    ropewalk("acl", "add", "Group:crew", "describe", "cluster")
    assert len(lines(ropewalk("acl", "ls").stdout)) == 4
    assert len(json.loads(ropewalk("acl", "ls", "--resource", "topic:orders", "-o", "json").stdout)) == 2
    assert lines(ropewalk("acl", "ls", "--user", "alice").stdout)[1:] == [
        ["User:alice", "allow", "read", "topic:orders", "*"]
    ]

    may = ropewalk("acl", "check", "alice", "describe", "topic:orders")
    assert (may.exit_code, may.stdout) == (
        0,
        "allowed: a rule allows it: User:alice allow read topic:orders *\n",
    )
    denied = ropewalk("acl", "check", "alice", "read", "topic:orders", "--host", "10.0.0.9", "-o", "json")
    assert denied.exit_code == 1
    assert json.loads(denied.stdout)["rule"]["pattern"] == "prefixed"
    assert ropewalk("acl", "check", "root", "alter", "cluster").stdout == "allowed: super user\n"
    assert ropewalk("acl", "check", "bob", "read", "topic:other").stdout == "denied: no rule allows it\n"

    removed = ropewalk("acl", "rm", "alice", "read", "topic:orders")
    assert len(lines(removed.stdout)) == 2
    again = ropewalk("acl", "rm", "alice", "read", "topic:orders")
    assert again.exit_code == 1
    assert "there is no such rule" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        pytest.param(("add", "alice", "peek", "topic:t"), 2, "is none of all, read", id="no operation"),
        pytest.param(("add", "alice", "read", "shelf:t"), 2, "is not topic:NAME", id="no resource"),
        pytest.param(("add", "alice", "read", "cluster:other"), 2, "is not topic:NAME", id="another cluster"),
        pytest.param(("add", "User:", "read", "topic:t"), 1, "must be TYPE:NAME", id="nobody"),
        pytest.param(
            ("add", "a", "read", "topic:t", "--host", "10.0.0.0/8"), 1, "must be an address", id="a network"
        ),
    ],
)
@pytest.mark.usefixtures("node")
def test_what_cannot_be_meant_is_refused(
    ropewalk: Ropewalk, arguments: tuple[str, ...], exit_code: int, said: str
) -> None:
    refused = ropewalk("acl", *arguments)
    assert refused.exit_code == exit_code
    assert said in refused.stderr


def test_a_node_that_checks_nothing_says_so(ropewalk: Ropewalk) -> None:
    with Cluster() as cluster:
        refused = ropewalk("acl", "ls", "-b", cluster.bootstrap)
    assert refused.exit_code == 1
    assert "this node has no authorizer" in refused.stderr
