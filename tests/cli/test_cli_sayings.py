"""Commands say what is the case where there is nothing to show, nothing to do, or something to lose."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropewalk.cli.output import visible, visible_lines
from ropewalk.testing import Cluster
from tests.cli.conftest import Ropewalk, in_terminal


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def told(node: Cluster, ropewalk: Ropewalk, monkeypatch: pytest.MonkeyPatch) -> Ropewalk:
    monkeypatch.setenv("ROPEWALK_BOOTSTRAP", node.bootstrap)
    return ropewalk


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(("group", "describe", "nobody"), 1, "there is no group of this name", id="no group"),
        pytest.param(("txn", "hanging"), 0, "no transaction hangs", id="no transaction hangs"),
        pytest.param(("topic", "create", "t", "-p", "0"), 2, "0 is none", id="no partitions"),
        pytest.param(("topic", "create", "t", "-r", "0"), 2, "0 is none", id="no replicas"),
        pytest.param(("cluster", "hot"), 0, "nothing is hot", id="idle"),
        pytest.param(("topic", "delete", "nowhere"), 1, "UNKNOWN_TOPIC_OR_PARTITION", id="nothing to delete"),
    ],
)
def test_nothing_is_said_to_be_nothing(
    told: Ropewalk, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = told(*arguments)
    assert result.exit_code == code
    assert words in result.output


def test_a_partition_that_a_topic_does_not_have_is_refused_without_a_record(told: Ropewalk) -> None:
    told("topic", "create", "single", "-p", "1")
    result = told("produce", "single", "-p", "9", stdin="")
    assert result.exit_code == 1
    assert "single has 1 partition, counted from 0, and no partition 9" in result.output
    assert told("produce", "single", "-p", "0", stdin="").exit_code == 0


def test_records_are_not_removed_unless_somebody_said_so(node: Cluster, told: Ropewalk) -> None:
    told("topic", "create", "dear", "-p", "1")
    told("produce", "dear", stdin="a\nb\n")
    for arguments in (("topic", "delete", "dear"), ("topic", "trim", "dear", "--before", "end")):
        result = told(*arguments)
        assert result.exit_code == 1
        assert "nothing was done; --yes does it without asking" in result.output
        shown, code = in_terminal(*arguments, bootstrap=node.bootstrap, until="to go on: ", then="orders\n")
        assert code == 1, shown
        assert "'orders' was typed, so nothing was done" in shown
    assert told("consume", "dear", "-e").output == "a\nb\n"
    arguments = ("topic", "trim", "dear", "--before", "1")
    shown, code = in_terminal(*arguments, bootstrap=node.bootstrap, until="to go on: ", then="dear\n")
    assert code == 0, shown
    assert told("consume", "dear", "-e").output == "b\n"
    assert told("topic", "trim", "dear", "--before", "end", "--dry-run").exit_code == 0
    assert told("topic", "delete", "dear", "--yes").exit_code == 0
    assert "dear" not in [each["topic"] for each in json.loads(told("topic", "ls", "-o", "json").output)]


def test_a_terminal_is_not_sent_what_it_would_obey(node: Cluster, told: Ropewalk) -> None:
    told("topic", "create", "rude", "-p", "1")
    value = b"\x1b]0;owned\x07 caf\xc3\xa9\ttab \xff\n"
    told("produce", "rude", "-k", "\x1b[2J", stdin=value)
    arguments = ("consume", "rude", "-e", "-f", "%k %v\\n")
    assert told(*arguments).stdout_bytes == b"\x1b[2J " + value, "a pipe gets what was written"
    shown, code = in_terminal(*arguments, bootstrap=node.bootstrap)
    assert code == 0
    assert "\\x1b[2J \\x1b]0;owned\\x07 café\ttab \\xff" in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain", "plain"), ("a\x1b[31mb", "a\\x1b[31mb"), ("x\ny", "x\\x0ay"), ("\x9b", "\\x9b"), ("é", "é")],
)
def test_what_is_shown_of_a_name(text: str, expected: str) -> None:
    assert visible(text) == expected


def test_lines_and_tabs_of_a_value_are_its_own() -> None:
    assert visible_lines(b"a\tb\nc\x00") == b"a\tb\nc\\x00"


def test_the_doctor_looks_at_every_node_and_at_the_directory_of_one_that_runs_here(
    ropewalk: Ropewalk, tmp_path: Path
) -> None:
    data = tmp_path / "running"
    data.mkdir(mode=0o755)
    with Cluster(data=data) as cluster:
        result = ropewalk("doctor", "-b", cluster.bootstrap, "--data", str(tmp_path / "other"), "-o", "json")
    found = {each["check"]: each for each in json.loads(result.stdout)}
    assert found["node 0"]["detail"].startswith("ropewalk ")
    assert str(data) in found["node 0 directory"]["detail"]
    assert "chmod 700" in found["node 0 directory: data directory"]["detail"]


def test_settings_of_the_cluster_and_of_a_node_are_set_shown_and_unset(told: Ropewalk) -> None:
    assert "nothing is set" in told("cluster", "config", "show").output
    assert told("cluster", "config", "set", "log.retention.ms=60000", "--dry-run").exit_code == 0
    assert "nothing is set" in told("cluster", "config", "show").output
    assert told("cluster", "config", "set", "log.retention.ms=60000").exit_code == 0
    shown = json.loads(told("cluster", "config", "show", "-o", "json").output)
    assert shown == [{"name": "log.retention.ms", "value": "60000", "source": "cluster"}]
    assert told("cluster", "config", "set", "log.retention.ms=70000", "--node", "0").exit_code == 0
    (own,) = json.loads(
        told("cluster", "config", "show", "log.retention.ms", "--node", "0", "-o", "json").output
    )
    assert (own["value"], own["source"]) == ("70000", "broker")
    assert told("cluster", "config", "unset", "log.retention.ms", "--node", "0").exit_code == 0
    assert told("cluster", "config", "unset", "log.retention.ms").exit_code == 0
    assert "nothing is set" in told("cluster", "config", "show").output
    refused = told("cluster", "config", "set", "no.such.setting=1")
    assert refused.exit_code == 1
    assert "INVALID_CONFIG" in refused.output
