"""What a node's journal begins with, who it says has written, and what a service manager is told."""

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

import ropewalk.cli
from ropewalk import __version__
from ropewalk.node.config import load
from ropewalk.node.exposure import warnings_of
from ropewalk.node.options import NodeOptions
from ropewalk.runtime.service_manager import ServiceManager
from ropewalk.testing import Cluster

UNIT = Path(ropewalk.cli.__file__).parent / "packages/ropewalk.service"
EXPOSURE_MAX = 3.0
WITHIN_S = 60


def run_node(
    data: Path, *options: str, environment: dict[str, str] | None = None, crash: bool = False
) -> str:
    """A node as a process, until it is ready; then it is stopped. What it wrote to standard error."""
    command = [sys.executable, "-c", "from ropewalk.cli.main import main; main()", "up", "--data", str(data)]
    command += ["--kafka", "127.0.0.1:0", "--http", "none", *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ropewalk ready")
    process.send_signal(signal.SIGKILL if crash else signal.SIGTERM)
    _, errors = process.communicate(timeout=WITHIN_S)
    assert crash or process.returncode == 0, errors
    return errors


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_journal_begins_with_what_starts_where_and_how(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = lines(run_node(data, "--set", "node.id=7", "--set", "log.retention.ms=60000"))
    beginning = first[0]
    assert beginning["event"] == "ropewalk starts"
    assert beginning["version"] == __version__
    assert (beginning["node"], beginning["directory"]) == (7, str(data))
    assert beginning["cluster"] is None, "there is none before the first start"
    assert beginning["kafka"] == "127.0.0.1:0"
    assert beginning["settings"]["log.retention.ms"] == "60000"
    assert all(line["node_id"] == 7 for line in first)
    second = lines(run_node(data, "--set", "node.id=7"))
    cluster_id = second[0]["cluster"]
    assert cluster_id is not None
    assert {line["cluster_id"] for line in second} == {cluster_id}
    assert first[-1]["cluster_id"] == cluster_id


def test_secrets_are_not_in_the_journal(tmp_path: Path) -> None:
    secret = "a secret of this cluster"
    options = ("--set", f"cluster.secret={secret}", "--peer", "127.0.0.1:0")
    journal = run_node(tmp_path / "data", *options)
    assert secret not in journal
    assert lines(journal)[0]["settings"]["cluster.secret"] == "(hidden)"


def test_recovery_is_one_line_with_counts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Cluster(data=data) as cluster:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        for topic in ("a", "b", "c"):
            producer.produce(cluster.create_topic(topic), b"value")
        assert producer.flush(WITHIN_S) == 0
    written = [log for log in data.rglob("*.log") if log.stat().st_size and log.parent != data]
    for log in written:
        with log.open("ab") as file:
            file.write(b"\0" * 10)  # as a write that was interrupted leaves it
    for mark in data.rglob("*clean*"):
        mark.unlink()
    found = [line for line in lines(run_node(data)) if "recovered" in line["event"]]
    assert len(found) == 1, found
    assert found[0]["cut"] == len(written) >= 3
    assert found[0]["cut_bytes"] == 10 * found[0]["cut"]


def test_text_in_a_file_has_no_colours(tmp_path: Path) -> None:
    journal = run_node(tmp_path / "data", "--set", "node.log.format=text")
    assert "ropewalk starts" in journal
    assert "\x1b" not in journal


def test_a_new_data_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    run_node(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_a_service_manager_is_told_when_the_node_is_ready_and_when_it_stops(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(WITHIN_S)
        run_node(tmp_path / "data", environment={"NOTIFY_SOCKET": str(path)})
        told = [manager.recv(4096).decode() for _ in range(3)]
    assert told[0].startswith("STATUS=starting")
    assert told[1].startswith("READY=1\nSTATUS=serving as node 0 of cluster ")
    assert told[2].startswith("STOPPING=1\n")


def test_a_watchdog_hears_again_and_again_that_the_node_works(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(WITHIN_S)
        told: list[str] = []

        def listen() -> None:
            while not told or not told[-1].startswith("STOPPING=1"):
                told.append(manager.recv(4096).decode())

        listening = threading.Thread(target=listen)
        listening.start()
        watchdog = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "30000"}
        run_node(tmp_path / "data", environment=watchdog)
        listening.join(WITHIN_S)
    assert told[1] == "WATCHDOG=1", "before it is ready, from when on the manager waits for it"
    assert sum(each.startswith("READY=1") for each in told) == 1
    assert told[-1].startswith("STOPPING=1")


def test_a_node_that_stops_asks_for_more_time(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as socket_of_manager:
        socket_of_manager.bind(str(path))
        socket_of_manager.settimeout(WITHIN_S)
        manager = ServiceManager(str(path), watchdog_ms=60_000)
        assert manager.beat_ms == 20_000
        manager.on_alive()
        assert socket_of_manager.recv(4096) == b"WATCHDOG=1"
        manager.on_stopping()
        assert socket_of_manager.recv(4096).startswith(b"STOPPING=1")
        manager.on_alive()
        assert socket_of_manager.recv(4096) == b"WATCHDOG=1\nEXTEND_TIMEOUT_USEC=60000000"
    assert ServiceManager(str(path)).beat_ms is None


def test_a_manager_that_is_gone_is_no_reason_to_end(tmp_path: Path) -> None:
    run_node(tmp_path / "data", environment={"NOTIFY_SOCKET": str(tmp_path / "nobody")})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param((), [], id="the defaults"),
        pytest.param(("kafka.listen=[::1]:9092",), [], id="the other loopback"),
        pytest.param(
            ("kafka.listen=0.0.0.0:9092",), ["advertise is not set", "from other machines"], id="everywhere"
        ),
        pytest.param(
            ("kafka.listen=:9092", "kafka.advertise=queue:9092"),
            ["from other machines"],
            id="everywhere, and it says where",
        ),
        pytest.param(("kafka.listen=10.0.0.1:9092",), ["kafka.listen (10.0.0.1:9092) can"], id="one address"),
        pytest.param(("http.listen=0.0.0.0:9644",), ["http.listen (0.0.0.0:9644) can"], id="metrics"),
        pytest.param(("http.listen=none",), [], id="no metrics"),
        pytest.param(
            ("kafka.listen=10.0.0.1:9092", "kafka.security.protocol=SSL"),
            ["kafka.listen (10.0.0.1:9092) can"],
            id="encrypted, and for anybody",
        ),
        pytest.param(
            ("kafka.listen=10.0.0.1:9092", "kafka.security.protocol=SSL", "ssl.client.auth=required"),
            [],
            id="for those with a certificate",
        ),
        pytest.param(
            ("listeners=SSL://10.0.0.1:1,PLAINTEXT://:2", "listener.name.ssl.ssl.client.auth=required"),
            ["advertised.listeners is not set", "listeners (PLAINTEXT://0.0.0.0:2) can"],
            id="several",
        ),
    ],
)
def test_addresses_that_could_surprise_are_warned_of(settings: tuple[str, ...], expected: list[str]) -> None:
    found = warnings_of(load(NodeOptions(settings=settings), {}))
    assert len(found) == len(expected)
    assert all(words in warning for words, warning in zip(expected, found, strict=True))


def test_a_start_warns_of_them(tmp_path: Path) -> None:
    journal = lines(run_node(tmp_path / "data", "--kafka", "0.0.0.0:0", "--sqs", "127.0.0.1:0"))
    warned = [line["event"] for line in journal if line["level"] == "warning"]
    assert len(warned) == 2, warned


def test_the_unit_can_be_enabled_is_notified_and_is_confined() -> None:
    text = UNIT.read_text()
    assert "[Install]\nWantedBy=multi-user.target" in text
    assert "\nType=notify\n" in text
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(UNIT)]
    judged = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", judged)
    assert found is not None, judged
    assert float(found[1]) <= EXPOSURE_MAX


def test_on_a_terminal_the_journal_is_text(tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    command = [sys.executable, "-c", "from ropewalk.cli.main import main; main()", "up", "--memory"]
    command += ["--kafka", "127.0.0.1:0", "--http", "none"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=end, text=True, cwd=tmp_path)
    os.close(end)
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    process.wait(WITHIN_S)
    shown = os.read(terminal, 65536).decode()
    os.close(terminal)
    process.stdout.close()
    assert "ropewalk starts" in shown
    assert not shown.startswith("{")
