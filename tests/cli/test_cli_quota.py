"""`ropewalk quota` as a user meets it, against a node."""

import json
from collections.abc import Iterator

import pytest

from ropewalk.testing import Cluster
from tests.cli.conftest import Ropewalk
from tests.cli.test_cli_commands import lines


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, ropewalk: Ropewalk) -> Iterator[None]:
    """After `ropewalk`, which clears the environment."""
    with Cluster() as cluster:
        monkeypatch.setenv("ROPEWALK_BOOTSTRAP", cluster.bootstrap)
        yield


@pytest.mark.usefixtures("node")
def test_quotas_are_set_listed_described_and_taken_away(ropewalk: Ropewalk) -> None:
    set_one = ropewalk("quota", "set", "--client-id", "batch", "producer_byte_rate=1000000")
    assert lines(set_one.stdout) == [
        ["ENTITY", "QUOTA", "VALUE"],
        ["client-id=batch", "producer_byte_rate", "1000000"],
    ]
    ropewalk("quota", "set", "--default-user", "--client-id", "ui", "request_percentage=12.5")
    ropewalk("quota", "set", "--client-id", "batch", "consumer_byte_rate=5")
    assert lines(ropewalk("quota", "ls").stdout)[1:] == [
        ["client-id=batch", "consumer_byte_rate", "5"],
        ["client-id=batch", "producer_byte_rate", "1000000"],
        ["client-id=ui", "default-user", "request_percentage", "12.5"],
    ]
    assert json.loads(ropewalk("quota", "ls", "--default-user", "-o", "json").stdout) == [
        {"entity": {"client-id": "ui", "user": None}, "quotas": {"request_percentage": 12.5}}
    ]
    described = ropewalk("quota", "describe", "--client-id", "batch")
    assert lines(described.stdout)[1] == ["consumer_byte_rate", "5", *["bytes", "consumed", "per", "second"]]
    ropewalk("quota", "unset", "--client-id", "batch", "consumer_byte_rate")
    assert len(lines(ropewalk("quota", "ls", "--client-id", "batch").stdout)) == 2
    taken = ropewalk("quota", "unset", "--client-id", "batch", "-o", "json")
    assert json.loads(taken.stdout)[0]["quotas"] == {"producer_byte_rate": 1_000_000}
    assert json.loads(ropewalk("quota", "ls", "--client-id", "batch", "-o", "json").stdout) == []


@pytest.mark.usefixtures("node")
def test_a_dry_run_changes_nothing(ropewalk: Ropewalk) -> None:
    arguments = ("--default-ip", "--dry-run")
    assert ropewalk("quota", "set", *arguments, "connection_creation_rate=5").exit_code == 0
    assert json.loads(ropewalk("quota", "ls", "-o", "json").stdout) == []
    ropewalk("quota", "set", "--default-ip", "connection_creation_rate=50")
    assert "50" in ropewalk("quota", "unset", *arguments).stdout
    assert len(json.loads(ropewalk("quota", "ls", "-o", "json").stdout)) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("set", "producer_byte_rate=1"), 2, "whose quota", id="nobody's"),
        pytest.param(("set", "--user", "u", "producer_byte_rate"), 2, "KEY=VALUE", id="no value"),
        pytest.param(("set", "--user", "u", "producer_byte_rate=x"), 2, "must be a number", id="no number"),
        pytest.param(
            ("set", "--user", "u", "--default-user", "producer_byte_rate=1"), 2, "one of them", id="both"
        ),
        pytest.param(("set", "--user", "u", "producer_byte_rate=0"), 1, "greater than 0", id="nothing"),
        pytest.param(("set", "--user", "u", "no_such=1"), 1, "no_such", id="no such quota"),
        pytest.param(("set", "--ip", "here", "connection_creation_rate=1"), 1, "address", id="no address"),
        pytest.param(("unset", "--user", "u", "no_such"), 2, "no_such", id="nothing to take away"),
        pytest.param(("describe", "--user", "u"), 1, "quota ls", id="nothing to describe"),
    ],
)
@pytest.mark.usefixtures("node")
def test_what_is_refused(ropewalk: Ropewalk, arguments: tuple[str, ...], code: int, said: str) -> None:
    result = ropewalk("quota", *arguments)
    assert result.exit_code == code
    assert said in " ".join(result.stderr.replace("│", " ").split())
