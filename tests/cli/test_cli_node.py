"""The command line and the client against a real node, in a process of its own."""

import asyncio
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ropewalk.cli.hot_keys import sample
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import parse_addresses
from ropewalk.node.demo import called_as
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from tests.cli.conftest import Ropewalk, start_process


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node that is ready."""
    ready_file = tmp_path_factory.mktemp("node") / "ready.json"
    process = start_process("up", "--memory", "--kafka", "127.0.0.1:0", "--ready-file", str(ready_file))
    assert process.stdout is not None
    said = re.fullmatch(
        r"ropewalk ready kafka=(127\.0\.0\.1:\d+) http=(http://127\.0\.0\.1:\d+) sqs=(http://127\.0\.0\.1:\d+)\n",
        process.stdout.readline().decode(),
    )
    assert said, process.communicate()
    address, http, sqs = said.groups()
    yield address
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 0
    written = json.loads(ready_file.read_text())
    assert (written["kafka"], written["http"], written["sqs"]) == ([address], [http], [sqs])


@pytest.fixture(autouse=True)
def _bootstrap(node: str, ropewalk: Ropewalk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROPEWALK_BOOTSTRAP", node)


def test_what_goes_in_comes_out(ropewalk: Ropewalk) -> None:
    assert ropewalk("topic", "create", "orders", "-p", "3").exit_code == 0
    sent = [f"key-{number % 7}:{number}" for number in range(500)]
    assert ropewalk("produce", "orders", "-K", ":", "-z", "zstd", stdin="\n".join(sent)).exit_code == 0
    consumed = ropewalk("consume", "orders", "-e", "-f", "%p %k:%v\\n").stdout.splitlines()
    assert sorted(line.split()[1] for line in consumed) == sorted(sent)
    for key in range(7):
        numbers = [int(line.rpartition(":")[2]) for line in consumed if f" key-{key}:" in line]
        assert numbers == sorted(numbers), "records of one key keep their order"
    described = json.loads(ropewalk("topic", "describe", "orders", "-o", "json").stdout)
    assert sum(partition["end_offset"] for partition in described[0]["partitions"]) == 500


def test_a_topic_is_made_by_producing_to_it(ropewalk: Ropewalk) -> None:
    assert ropewalk("produce", "made-on-first-use", stdin="hello\n").exit_code == 0
    assert ropewalk("consume", "made-on-first-use", "-e").stdout == "hello\n"


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_records_arrive_whatever_the_acks(acks: str, ropewalk: Ropewalk) -> None:
    topic = f"acks-{acks}"
    assert ropewalk("topic", "create", topic).exit_code == 0
    assert ropewalk("produce", topic, "--acks", acks, stdin="a\nb\n").exit_code == 0
    # Without -e: with acks=0 nobody has said yet that the records are there.
    assert ropewalk("consume", topic, "-n", "2").stdout == "a\nb\n"


def test_a_topic_is_trimmed_grown_and_deleted(ropewalk: Ropewalk) -> None:
    assert ropewalk("topic", "create", "short").exit_code == 0
    assert ropewalk("produce", "short", stdin="a\nb\nc\n").exit_code == 0
    assert ropewalk("topic", "trim", "short", "--before", "-1", "--yes").exit_code == 0
    assert ropewalk("consume", "short", "-e").stdout == "c\n"
    assert ropewalk("topic", "add-partitions", "short", "-n", "2").exit_code == 0
    assert ropewalk("topic", "delete", "short", "--yes").exit_code == 0
    refused = ropewalk("consume", "short", "-e")
    assert refused.exit_code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("create", "bad name"), "INVALID_TOPIC_EXCEPTION"),
        (("create", "orphans", "-r", "3"), "(INVALID_REPLICATION_FACTOR); pass a smaller --replicas"),
        (("create", "odd", "-c", "no.such=1"), "INVALID_CONFIG"),
        (("create", "odd", "-c", "retention.ms=soon"), "INVALID_CONFIG"),
        (("delete", "missing"), "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_the_nodes_refusals_reach_the_user(
    arguments: tuple[str, ...], expected: str, ropewalk: Ropewalk
) -> None:
    result = ropewalk("topic", *arguments)
    assert result.exit_code == 1
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_doctor_is_content(ropewalk: Ropewalk, tmp_path: Path) -> None:
    result = ropewalk("doctor", "--data", str(tmp_path))
    assert result.exit_code == 0, result.stdout
    assert "broker 0" in result.stdout


def test_the_cluster_shows_its_nodes_and_is_well(ropewalk: Ropewalk) -> None:
    assert ropewalk("topic", "create", "shown", "-p", "2").exit_code == 0
    (node,) = json.loads(ropewalk("cluster", "nodes", "-o", "json").stdout)
    assert (node["node"], node["state"], node["controller"]) == (0, "active", True)
    assert node["roles"] == ["broker", "controller", "frontend"]
    assert node["leaders"] == node["replicas"] >= 2
    status = json.loads(ropewalk("cluster", "status", "-o", "json").stdout)
    assert (status["nodes_active"], status["partitions_without_leader"], status["health"]) == (1, 0, "good")
    assert ropewalk("cluster", "status").stdout.startswith("CLUSTER")
    assert "active" in ropewalk("cluster", "nodes").stdout
    assert ropewalk("cluster", "health").stdout == "all is well\n"
    assert json.loads(ropewalk("cluster", "health", "-o", "json").stdout)["healthy"] is True


def test_leaders_and_replicas_can_be_asked_to_change(ropewalk: Ropewalk) -> None:
    assert ropewalk("topic", "create", "moved", "-p", "2").exit_code == 0
    elected = ropewalk("cluster", "elect", "moved")
    assert (elected.exit_code, elected.stderr) == (0, "2 partitions needed nothing\n")
    assert ropewalk("cluster", "elect").exit_code == 0
    assert json.loads(ropewalk("cluster", "reassign", "-o", "json").stdout) == []
    refused = ropewalk("cluster", "reassign", "moved-1", "--to", "7")
    assert refused.exit_code == 1
    assert "INVALID_REPLICA_ASSIGNMENT" in refused.stderr
    assert ropewalk("cluster", "reassign", "moved-1", "--to", "0").exit_code == 0
    assert ropewalk("cluster", "reassign", "--cancel").exit_code == 0
    assert "NO_REASSIGNMENT_IN_PROGRESS" in ropewalk("cluster", "reassign", "moved-1", "--cancel").stderr


def test_a_topic_has_an_owner_and_knows_when_it_was_made(ropewalk: Ropewalk) -> None:
    assert (
        ropewalk("topic", "create", "owned", "--owner", "payments", "--min-insync", "majority").exit_code == 0
    )
    (described,) = json.loads(ropewalk("topic", "describe", "owned", "-o", "json").stdout)
    assert described["owner"] == "payments"
    assert described["created_at_ms"] > 0
    assert {"name": "min.insync.replicas", "value": "1", "source": "topic"} in described["settings"]
    assert "owner payments  created 20" in ropewalk("topic", "describe", "owned").stdout
    refused = ropewalk("topic", "create", "watched", "--observers", "1")
    assert refused.exit_code == 1, "there is no second node that could observe"


def test_the_load_is_shown_and_found_even(ropewalk: Ropewalk) -> None:
    keyed = "\n".join(["loud:x"] * 80 + [f"quiet-{number}:x" for number in range(20)])
    assert ropewalk("produce", "busy", "-K", ":", stdin=keyed).exit_code == 0
    plan = json.loads(ropewalk("cluster", "balance", "--dry-run", "-o", "json").stdout)
    assert (plan["carried_out"], plan["changes"]) == (False, [])
    assert plan["shares"] == [{"node": 0, "before": 1.0, "after": 1.0}]
    assert "nothing to move" in ropewalk("cluster", "balance").stdout
    shown = json.loads(ropewalk("cluster", "hot", "-o", "json").stdout)
    assert set(shown) == {"partitions", "nodes_wanted"}
    assert ropewalk("cluster", "hot", "--keys", "0").stdout.startswith(("TOPIC", "nothing is hot"))


def test_the_commonest_keys_are_found_in_a_sample(node: str, ropewalk: Ropewalk) -> None:
    lines = ["loud:x"] * 3 + ["louder:x"] * 5 + ["quiet:x"]
    assert ropewalk("produce", "sampled", "-K", ":", stdin="\n".join(lines)).exit_code == 0

    async def ask() -> list[tuple[str, float]]:
        async with Client(TcpNetwork(), SystemClock(), Random(1), parse_addresses(node)) as client:
            found = await sample(client, [("sampled", 0)], 5)
        return [(each.key, round(each.share, 3)) for each in found["sampled", 0]]

    assert asyncio.run(ask()) == [("louder", 0.556), ("loud", 0.333)]


def test_the_last_node_cannot_be_taken_away(ropewalk: Ropewalk) -> None:
    assert ropewalk("topic", "create", "here").exit_code == 0
    refused = ropewalk("cluster", "remove", "0")
    assert refused.exit_code == 1
    assert "there is no other broker" in refused.stderr
    assert "BROKER_ID_NOT_REGISTERED" in ropewalk("cluster", "remove", "7").stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("elect", "--unclean"), "name the partitions"),
        (("elect", "missing-3"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("reassign", "--to", "1"), "name the partitions"),
        (("reassign", "x"), "give one of the two"),
        (("reassign", "x", "--to", "1", "--cancel"), "give one of the two"),
        (("reassign", "x", "--to", "one"), "no list of node ids"),
    ],
)
def test_what_the_cluster_is_wrongly_asked(
    arguments: tuple[str, ...], expected: str, ropewalk: Ropewalk
) -> None:
    result = ropewalk("cluster", *arguments)
    assert result.exit_code != 0
    assert expected in result.stderr


def test_the_demonstration_calls_the_command_line_as_it_was_called(tmp_path: Path) -> None:
    clone = tmp_path / "clone" / ".venv" / "bin" / "ropewalk"
    installed = tmp_path / "other" / ".venv" / "bin" / "ropewalk"
    for program in (clone, installed):
        program.parent.mkdir(parents=True)
        program.touch()
    (tmp_path / "clone" / "run").touch()
    assert called_as(str(clone)) == "./run"
    assert called_as(str(installed)) == "ropewalk", "an environment of somebody's own"
    assert called_as("/usr/bin/ropewalk") == "ropewalk"
    assert called_as("-c") == "ropewalk"


def test_the_demonstration_names_commands_that_there_are(ropewalk: Ropewalk) -> None:
    process = start_process("up", "--demo", "--memory", "--kafka", "127.0.0.1:0", "--http", "none")
    assert process.stdout is not None
    shown = ""
    while "Ctrl-C" not in shown:
        line = process.stdout.readline().decode()
        assert line, shown
        shown += line
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    called = re.findall(r"\bropewalk (topic|produce|consume) ", shown)
    assert called == ["topic", "produce", "consume"], shown
    assert "./run" not in shown
