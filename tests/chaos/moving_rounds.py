"""Rounds of the metadata's way from a node's directory to etcd, and back, under load, with `kill -9` at random instants.

    leave    the node whose directory is one of the two homes is stopped in order or killed
    move     `cluster metadata move` is killed at some instant or at some step, and called again until it is done; sometimes it is asked in
             between to take the metadata back. Another node may be killed meanwhile, and stay away
    refuse   sometimes the node is started at the home that was left, and must end with one line
    arrive   the node is started at the other home, and often killed once more while it starts; then the others are, one by one. With etcd all
             three may decide, with the directory of one node it alone

The load is that of `copying.py`: an idempotent producer, and programs that copy what it wrote, exactly once, with transactions in a group.
After each way there must be one controller, everybody must follow it and nobody have left service; the cluster has the id and the topics it
had, one more can be made, and its metadata go on where they were. In the end each record is there once, and all replicas are the same bytes.
"""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient

from tests.chaos.cluster import ClusterProcesses
from tests.chaos.copying import (
    PARTITION_COUNT,
    QUIET,
    SETTINGS,
    SOURCE,
    TARGET,
    Copier,
    Feed,
    copies_of,
    make_topics,
    violations_of,
)
from tests.chaos.etcd import EtcdProcesses
from tests.chaos.node import ANSWERED_WITHIN_S, NodeProcess, Program

KEEPER: Final = 0
"""The node whose directory is one of the homes."""

MOVED_WITHIN_S: Final = 60.0
REFUSED_WITHIN_S: Final = 30.0
REFUSAL: Final = "have moved to"
FOLLOWED_WITHIN_S: Final = 60.0
NODE_COUNT: Final = 3
CALLS_MIN: Final = 1_500
"""Of a move of little metadata; how many one makes is known when it was not killed."""


class MoveTotals(NamedTuple):
    moves: int
    kills: int
    """Of nodes."""
    movers_killed: int
    half_way: int
    """How often a mover that was killed left the metadata on their way."""
    taken_back: int
    refused: int
    """Starts at a home that was left."""
    fed: int
    copied: int
    pause_s: float
    """The longest time without an acknowledgement."""
    violations: list[str]

    def __str__(self) -> str:
        return (
            f"{self.moves} moves, {self.kills} kills of nodes, {self.movers_killed} of movers, {self.half_way} of them half-way; "
            f"{self.taken_back} taken back, {self.refused} starts at a home that was left refused; {self.fed} records fed, {self.copied} copied; "
            f"clients paused for {self.pause_s:.1f} s at most; {len(self.violations)} violations"
        )


def run(moves: int, *, seed: int = 0, progress: Callable[[str], None] = lambda _: None) -> MoveTotals:
    """There, back, there and so on, in one cluster; ends with the first move that has a violation."""
    with moving_cluster() as (cluster, etcd, scratch), ExitStack() as stack:
        feed = Feed(cluster.bootstrap)
        feed.start()
        copiers = [Copier(number, cluster.bootstrap, scratch / f"copier-{number}") for number in range(2)]
        for copier in copiers:
            copier.start()
            stack.callback(copier.kill)
        moving = Moving(cluster, etcd, Random(seed))
        violations: list[str] = []
        try:
            for number in range(moves):
                violations += moving.move("etcd" if number % 2 == 0 else "local")
                for copier in copiers:
                    copier.restart_if_ended()
                progress(f"{moving.said()}, {feed.count} fed")
                if violations:
                    break
            feed.end()
            copies = copies_of(cluster.bootstrap, feed.acknowledged, copiers)
            for copier in copiers:
                copier.kill()
            cluster.wait_until_healed(TARGET, PARTITION_COUNT)
        except Exception as error:
            error.add_note(cluster.last_words())
            raise
        violations += [*feed.failures, *violations_of(feed.acknowledged, copies)]
        cluster.stop()
        violations += cluster.differing_replicas(SOURCE, PARTITION_COUNT)
        violations += cluster.differing_replicas(TARGET, PARTITION_COUNT)
        if violations:
            violations += [f"a copier: {copier.last_words()}" for copier in copiers]
            violations.append(cluster.last_words())
    return moving.totals(feed.count, sum(map(len, copies)), feed.pause_s_max, violations)


@contextmanager
def moving_cluster() -> Iterator[tuple[ClusterProcesses, EtcdProcesses, Path]]:
    """Three nodes with both topics, with the metadata in the directory of the first, and members of etcd beside them."""
    in_memory = Path("/dev/shm")
    with ExitStack() as stack:
        place = in_memory if in_memory.is_dir() else None
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moving-", dir=place)))
        etcd = stack.enter_context(EtcdProcesses(scratch / "etcd"))
        data = [scratch / f"data-{number}" for number in range(NODE_COUNT)]
        cluster = ClusterProcesses(data, scratch, settings=SETTINGS, programs_say_roles=True)
        stack.callback(cluster.kill)
        for number, node in enumerate(cluster.nodes):
            node.program = program_of(number, "local", etcd)
        cluster.start()
        make_topics(cluster, SOURCE, TARGET)
        yield cluster, etcd, scratch


def program_of(number: int, home: str, etcd: EtcdProcesses) -> Program:
    """How a node is run while the metadata are there."""
    if home == "etcd":
        return Program(
            settings=(
                "node.roles=broker,controller,frontend",
                "metadata.home=etcd",
                f"metadata.etcd.endpoints={etcd.endpoints}",
            )
        )
    roles = "broker,controller,frontend" if number == KEEPER else "broker,frontend"
    return Program(settings=(f"node.roles={roles}",))


class Moving:
    """A cluster whose metadata change their home."""

    def __init__(self, cluster: ClusterProcesses, etcd: EtcdProcesses, random: Random) -> None:
        self._cluster = cluster
        self._etcd = etcd
        self._random = random
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        self._cluster_id = self._find_cluster_id()
        self._topics = {SOURCE, TARGET}
        self._moved_in_s = 1.0
        """How long the last mover took that was not killed."""
        self._calls = CALLS_MIN
        """The most functions that one called which was let go on to its end."""
        self._moves = self._kills = self._movers_killed = self._half_way = self._taken_back = (
            self._refused
        ) = 0

    def said(self) -> str:
        return str(self.totals(0, 0, 0.0, [])).partition(";")[0]

    def totals(self, fed: int, copied: int, pause_s: float, violations: list[str]) -> MoveTotals:
        return MoveTotals(
            self._moves,
            self._kills,
            self._movers_killed,
            self._half_way,
            self._taken_back,
            self._refused,
            fed,
            copied,
            pause_s,
            violations,
        )

    def move(self, home: str) -> list[str]:
        """What is wrong after it."""
        keeper = self._cluster.nodes[KEEPER]
        offset = max(_figure(node, "ropewalk_metadata_offset") for node in self._cluster.nodes)
        self._end(keeper)
        if self._random.random() < 0.3:  # whoever is away meanwhile comes back with the others
            self._kill(self._random.choice(self._cluster.nodes[KEEPER + 1 :]))
        self._carry_over(home)
        violations = self._try_the_former_home() if self._random.random() < 0.3 else []
        others = list(range(KEEPER + 1, NODE_COUNT))
        for number in (KEEPER, *self._random.sample(others, len(others))):
            self._arrive(number, home)
        self._cluster.wait_until_healed(SOURCE, PARTITION_COUNT)
        self._moves += 1
        return violations + self._look(offset)

    def _carry_over(self, home: str) -> None:
        for _ in range(self._random.randrange(4)):
            self._kill_a_mover(home)
            if self._random.random() < 0.5:
                code, said = self._call(home, "--back")
                if code == 0:
                    self._half_way += 1
                    self._taken_back += 1
                elif "nothing to take back" not in said and "have arrived" not in said:
                    raise RuntimeError(f"the metadata were not taken back: {said}")
        began = time.monotonic()
        code, said = self._call(home)
        if code != 0:
            raise RuntimeError(f"the metadata were not moved: {said}")
        self._moved_in_s = time.monotonic() - began

    def _kill_a_mover(self, home: str) -> None:
        """At a random instant, or at a random step of the move."""
        if self._random.random() < 0.3:
            mover = subprocess.Popen(
                self._command(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(self._random.uniform(0, 1.1 * self._moved_in_s))
            mover.kill()
            self._movers_killed += mover.wait() == -signal.SIGKILL
            return
        calls = self._random.randrange(self._calls + self._calls // 10)
        mortal = [sys.executable, "-m", "tests.chaos.mortal_mover", str(calls)]
        done = subprocess.run(
            [*mortal, *self._command(home)[1:]],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=False,
            timeout=MOVED_WITHIN_S,
        )
        if done.returncode == -signal.SIGKILL:
            self._movers_killed += 1
            return
        said = done.stderr.decode()
        if done.returncode != 0:
            raise RuntimeError(f"the metadata were not moved: {said}")
        self._calls = max(self._calls, int(said.rpartition("calls ")[2]))

    def _try_the_former_home(self) -> list[str]:
        """The keeper still has the configuration of before."""
        keeper = self._cluster.nodes[KEEPER]
        keeper.begin()
        code = keeper.wait_until_ended(within_s=REFUSED_WITHIN_S)
        last = keeper.last_words().strip().splitlines()[-1]
        self._refused += 1
        if code not in (0, None) and REFUSAL in last:
            return []
        return [f"a node at the home that was left was not refused in one line but ended with {code}: {last}"]

    def _arrive(self, number: int, home: str) -> None:
        node = self._cluster.nodes[number]
        if node.is_running:
            self._end(node)
        node.program = program_of(number, home, self._etcd)
        node.begin()
        if self._random.random() < 0.5:
            time.sleep(self._random.uniform(0, 2))
            self._kill(node)
            node.begin()
        node.wait_until_ready()

    def _look(self, offset: int) -> list[str]:
        found: list[str] = []
        name = f"moved-{self._moves}"
        make_topics(self._cluster, name)
        self._topics.add(name)
        self._cluster.controller()
        self._wait_until_all_follow()
        cluster_id = self._find_cluster_id()
        if cluster_id != self._cluster_id:
            found.append(f"cluster {self._cluster_id} is {cluster_id}")
        missing = self._topics - set(self._admin.list_topics(timeout=ANSWERED_WITHIN_S).topics)
        if missing:
            found.append(f"topics {sorted(missing)} are gone")
        for number, node in enumerate(self._cluster.nodes):
            if _figure(node, "ropewalk_metadata_parted"):
                found.append(f"node {number} knows another history and has left service")
            if _figure(node, "ropewalk_metadata_offset") <= offset:
                found.append(f"the metadata of node {number} have gone back below {offset}")
        return found

    def _find_cluster_id(self) -> str:
        return str(self._admin.describe_cluster().result(ANSWERED_WITHIN_S).cluster_id)

    def _wait_until_all_follow(self) -> None:
        deadline = time.monotonic() + FOLLOWED_WITHIN_S
        while len({_figure(node, "ropewalk_metadata_offset") for node in self._cluster.nodes}) > 1:
            if time.monotonic() > deadline:
                raise RuntimeError(f"some node does not follow the metadata\n{self._cluster.last_words()}")
            time.sleep(0.05)

    def _call(self, home: str, *options: str) -> tuple[int, str]:
        done = subprocess.run(
            self._command(home, *options), capture_output=True, check=False, timeout=MOVED_WITHIN_S
        )
        return done.returncode, (done.stdout + done.stderr).decode()

    def _command(self, home: str, *options: str) -> list[str]:
        keeper = self._cluster.nodes[KEEPER]
        command = [*keeper.program.command, "cluster", "metadata", "move", *options]
        command += ["--node-id", str(KEEPER), "--data", str(keeper.data)]
        for setting in keeper.settings:
            command += ["--set", setting]
        members = self._etcd.endpoints.replace("http://", "")
        return [*command, "--to", f"etcd://{members}" if home == "etcd" else home]

    def _end(self, node: NodeProcess) -> None:
        if self._random.random() < 0.5:
            self._kill(node)
        else:
            node.stop()

    def _kill(self, node: NodeProcess) -> None:
        self._kills += 1
        node.kill()


def _figure(node: NodeProcess, name: str) -> int:
    lines = node.page("/metrics")[1].splitlines()
    (figure,) = [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]
    return int(float(figure))
