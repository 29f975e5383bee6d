"""Real processes that were set up wrongly, beside a cluster that takes no harm: each ends, or waits, with one clear line."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ropewalk.local.ports import free_ports
from tests.chaos.node import NodeProcess

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180)]

WITHIN_S = 60.0
SETTINGS = ("cluster.secret=a secret of this cluster", "node.session.timeout.ms=2000")
NEWCOMER = 5
PROGRAM = str(Path(sys.executable).parent / "ropewalk")


class Pair:
    """Two nodes, of which the first decides."""

    def __init__(self, place: Path) -> None:
        self._peers = [f"127.0.0.1:{port}" for port in free_ports("127.0.0.1", 2)]
        self.nodes = [self._node(place, number) for number in range(2)]

    def _node(self, place: Path, number: int) -> NodeProcess:
        own = place / f"node-{number}"
        own.mkdir()
        options = ("--node-id", str(number), "--peer", self._peers[number], "--http", "none", *self.seeds)
        roles = () if number == 0 else ("--role", "broker")
        return NodeProcess(own / "data", own, SETTINGS, options=(*options, *roles))

    @property
    def seeds(self) -> tuple[str, ...]:
        return tuple(word for peer in self._peers for word in ("--seed", peer))

    def known(self) -> object:
        """The nodes of the cluster, with their epochs and states."""
        done = subprocess.run(
            [PROGRAM, "cluster", "nodes", "-o", "json", "-b", self.nodes[0].address],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=True,
        )
        return [(each["node"], each["epoch"], each["state"]) for each in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("pair"))
    with ExitStack() as stack:
        for node in pair.nodes:
            node.begin()
            stack.callback(node.kill)
        for node in pair.nodes:
            node.wait_until_ready()
        yield pair


def command(data: Path, *arguments: str, node_id: int = NEWCOMER) -> list[str]:
    words = [PROGRAM, "up", "--node-id", str(node_id), "--data", str(data), "--kafka", "127.0.0.1:0"]
    words += ["--http", "none", *arguments]
    for setting in SETTINGS:
        words += ["--set", setting]
    return words


def newcomer(pair: Pair, data: Path, *, node_id: int = NEWCOMER) -> list[str]:
    peer = ("--peer", "127.0.0.1:0", "--role", "broker", *pair.seeds)
    return command(data, *peer, node_id=node_id)


def refused(words: list[str]) -> str:
    """What a process that ends by itself has to say: one line, and no traceback."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=WITHIN_S)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    said = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(said) == 1, done.stderr
    return said[0]


def test_a_node_with_a_number_that_is_taken(pair: Pair, tmp_path: Path) -> None:
    before = pair.known()
    said = refused(newcomer(pair, tmp_path / "data", node_id=1))
    assert "a node with id 1 and another data directory is alive" in said
    assert pair.known() == before


def test_a_node_with_the_data_of_another_cluster(pair: Pair, tmp_path: Path) -> None:
    before = pair.known()
    data = tmp_path / "data"
    with begun(command(data)) as alone:
        assert alone.stdout is not None
        assert alone.stdout.readline().startswith("ropewalk ready")
        alone.send_signal(signal.SIGTERM)
        assert alone.wait(WITHIN_S) == 0
    kept = contents(data)
    said = refused(newcomer(pair, data))
    assert re.search(r"belongs to cluster \S+", said)
    assert pair.known() == before
    assert contents(data) == kept, "what it holds may be wanted elsewhere"


@pytest.mark.parametrize(("ahead_s", "word"), [(3600, "ahead"), (-3600, "behind")])
def test_a_node_whose_clock_is_an_hour_off(pair: Pair, tmp_path: Path, ahead_s: int, word: str) -> None:
    before = pair.known()
    late = [sys.executable, str(Path(__file__).with_name("late.py")), str(ahead_s)]
    said = refused([*late, *newcomer(pair, tmp_path / "data")])
    assert re.search(rf"the clock of node {NEWCOMER} is (3599|3600) s {word}", said)
    assert pair.known() == before


def test_a_node_that_cannot_reach_etcd_says_so_and_waits(tmp_path: Path) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    etcd = ("--set", "metadata.home=etcd", "--set", f"metadata.etcd.endpoints=http://127.0.0.1:{port}")
    with begun(command(tmp_path / "data", "--peer", "127.0.0.1:0", *etcd)) as waiting:
        assert waiting.stderr is not None
        said = json.loads(waiting.stderr.readline())
        assert said["event"] == "ropewalk starts"
        said = json.loads(waiting.stderr.readline())
        assert said["event"] == "waiting for the metadata"
        assert said["reason"].startswith(f"etcd at 127.0.0.1:{port} cannot be read")
        assert waiting.poll() is None
        waiting.send_signal(signal.SIGTERM)
        waiting.wait(WITHIN_S)
        assert waiting.stderr.read() == "", "it has been said"


def test_a_node_on_a_disk_that_is_read_only(pair: Pair, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    before = pair.known()
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", disk], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        for data in (disk, disk / "data"):
            said = refused(newcomer(pair, data))
            assert said.startswith(f"ropewalk: cannot use {data}: Read-only file system")
    finally:
        subprocess.run(["umount", disk], check=True)
    assert pair.known() == before


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@contextmanager
def begun(words: list[str]) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
