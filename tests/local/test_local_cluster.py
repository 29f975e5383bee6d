"""`ropewalk up --nodes`: real processes, from the first to the last."""

import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE_S = 60

pytestmark = pytest.mark.compat


class Running:
    """A supervisor, what it has said so far, and its ready file."""

    def __init__(self, ready_file: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ropewalk", "up", "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0"),
                *("--peer", "127.0.0.1:0", "--ready-file", str(ready_file), *arguments),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("ROPEWALK_")},
        )
        self._said = ""
        self._heard = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._ready_file = ready_file

    def await_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ropewalk ready kafka=127.0.0.1:"), self._said

    @property
    def ready(self) -> dict[str, list[str]]:
        document: dict[str, list[str]] = json.loads(self._ready_file.read_text())
        return document

    def pid(self, node: int) -> int:
        return int(self.ready["pids"][node])

    def await_another(self, node: int, former: int) -> None:
        """Until another process is that node."""
        deadline = time.monotonic() + PATIENCE_S
        while self.pid(node) == former:
            assert time.monotonic() < deadline, self._said
            time.sleep(0.02)

    def await_words(self, pattern: str) -> re.Match[str]:
        with self._heard:
            assert self._heard.wait_for(lambda: re.search(pattern, self._said), PATIENCE_S), self._said
        found = re.search(pattern, self._said)
        assert found is not None
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._listener.join(PATIENCE_S)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._heard:
                self._said += line
                self._heard.notify_all()


@contextmanager
def running(tmp_path: Path, *arguments: str) -> Iterator[Running]:
    cluster = Running(tmp_path / "ready.json", *arguments)
    try:
        cluster.await_ready()
        yield cluster
    finally:
        cluster.close()


def ropewalk(cluster: Running, *arguments: str, stdin: str = "", node: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ropewalk", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "ROPEWALK_BOOTSTRAP": cluster.ready["kafka"][node]},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def await_end(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], PATIENCE_S)[0], f"process {pid} lives on"
    finally:
        os.close(descriptor)


def test_a_node_that_is_killed_is_missed_by_nobody_and_can_be_started_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(tmp_path, "--nodes", "3", "--data", str(data)) as cluster:
        cluster.await_words("node-0 keeps the metadata")
        assert [len(cluster.ready[door]) for door in ("kafka", "http", "sqs", "peer", "pids")] == [
            3,
            3,
            3,
            3,
            3,
        ]
        assert (data / "secret").stat().st_mode & 0o777 == 0o600
        ropewalk(cluster, "topic", "create", "t", "-p", "3")
        ropewalk(cluster, "produce", "t", stdin="a\n")
        os.kill(cluster.pid(1), signal.SIGKILL)
        again = cluster.await_words(r"node-1 was ended by SIGKILL; to start it again: (.*)\n")[1]
        ropewalk(cluster, "produce", "t", stdin="b\n", node=2)
        assert sorted(ropewalk(cluster, "consume", "t", "-e").split()) == ["a", "b"]
        restarted = subprocess.Popen(shlex.split(again), stdout=subprocess.PIPE, text=True)
        try:
            assert restarted.stdout is not None
            assert restarted.stdout.readline().startswith("ropewalk ready")
            ropewalk(cluster, "cluster", "health", "--wait")
        finally:
            restarted.terminate()
            assert restarted.wait(PATIENCE_S) == 0
        assert cluster.stop() == 0
        for node in (0, 2):
            await_end(cluster.pid(node))


def test_a_cluster_finds_its_data_again_and_nothing_outlives_its_supervisor(tmp_path: Path) -> None:
    arguments = ("--nodes", "3", "--data", str(tmp_path / "data"))
    with running(tmp_path, *arguments) as cluster:
        ropewalk(cluster, "produce", "t", stdin="a\n")
        cluster.process.kill()
        for node in range(3):
            await_end(cluster.pid(node))
    with running(tmp_path, *arguments) as cluster:
        assert ropewalk(cluster, "consume", "t", "-e") == "a\n"
        second = subprocess.run(
            [sys.executable, "-m", "ropewalk", "up", *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert second.returncode == 1
        assert "another `ropewalk up` runs the cluster" in second.stderr


def test_nodes_in_memory_are_started_again_where_that_is_wanted(tmp_path: Path) -> None:
    with running(tmp_path, "--nodes", "3", "--memory", "--restart") as cluster:
        ropewalk(cluster, "produce", "t", stdin="a\n")
        former = cluster.pid(2)
        os.kill(former, signal.SIGKILL)
        cluster.await_words("node-2 was ended by SIGKILL; it is started again")
        cluster.await_another(2, former)
        ropewalk(cluster, "cluster", "health", "--wait")
        assert ropewalk(cluster, "consume", "t", "-e") == "a\n"
        assert cluster.stop() == 0


@pytest.mark.skipif(shutil.which("etcd") is None, reason="there is no etcd here")
def test_with_etcd_any_node_may_go(tmp_path: Path) -> None:
    with running(tmp_path, "--nodes", "3", "--memory", "--etcd", "auto") as cluster:
        assert len(cluster.ready["etcd"]) == len(cluster.ready["etcd_pids"]) == 3
        ropewalk(cluster, "produce", "t", stdin="a\n")
        status = json.loads(ropewalk(cluster, "cluster", "status", "-o", "json"))
        decides = status["controller"]
        other = (decides + 1) % 3
        os.kill(cluster.pid(decides), signal.SIGKILL)
        ropewalk(cluster, "produce", "t", stdin="b\n", node=other)
        assert sorted(ropewalk(cluster, "consume", "t", "-e", node=other).split()) == ["a", "b"]
        assert cluster.stop() == 0


def test_a_cluster_that_cannot_start_says_why_and_leaves_nothing_behind(tmp_path: Path) -> None:
    tmp_path.joinpath("node-1").write_text("not a directory")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "ropewalk", "up", "--nodes", "3", "--data", str(tmp_path)),
            *("--kafka", "127.0.0.1:0", "--http", "none"),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert re.search("ropewalk: node-1 ended with exit code 1: .*node-1", done.stderr), done.stderr
