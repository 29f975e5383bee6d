"""Rounds of upgrades under load: a cluster of the release before is rolled up, back, up again, and finalised, with `kill -9` at random instants.

    up      each node is stopped in order or killed, and started with this version; often it is killed once more while it starts
    back    the same with the release before, which must find nothing that it cannot read
    final   the level is raised while a node is killed and started; afterwards the release before is refused in one line

The load is that of `copying.py`: an idempotent producer, and programs that copy what it wrote, exactly once, with transactions in a group.
In the end each record is there once, and those of a partition in their order.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from ropewalk.base.levels import OURS
from tests.chaos.cluster import ClusterProcesses
from tests.chaos.copying import (
    PARTITION_COUNT,
    SOURCE,
    Copier,
    Feed,
    copies_of,
    copying_cluster,
    violations_of,
)
from tests.chaos.node import NodeProcess, Program
from tests.upgrade.wheels import unpack_release, unpack_this

BEFORE: Final = "0.1.0"
STEPS: Final = ("up", "back", "up", "final")
COMMAND_WITHIN_S: Final = 60
REFUSED_WITHIN_S: Final = 30
REFUSAL: Final = "start a newer version"


class UpgradeTotals(NamedTuple):
    rounds: int
    changes: int
    """Starts of a node with another version than before."""
    kills: int
    fed: int
    copied: int
    pauses_s: list[float]
    """The longest time without an acknowledgement, of each round."""
    violations: list[str]

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.changes} changes of version, {self.kills} kills; {self.fed} records fed, "
            f"{self.copied} copied; clients paused for {max(self.pauses_s, default=0):.1f} s at most; "
            f"{len(self.violations)} violations"
        )


class Versions(NamedTuple):
    """How nodes of the two versions are run."""

    before: Program
    this: Program


def build_versions(directory: Path) -> Versions:
    """Raises `NoHistory` where the release before cannot be built."""
    return Versions(
        _program(unpack_release(BEFORE, directory)),
        _program(unpack_this(directory), "features.finalize=manual"),
    )


def run(
    rounds: int,
    *,
    seed: int = 0,
    etcd: bool = False,
    steps: Sequence[str] = STEPS,
    versions: Versions,
    progress: Callable[[str], None] = lambda _: None,
) -> UpgradeTotals:
    """Ends with the first round that has a violation."""
    totals = UpgradeTotals(0, 0, 0, 0, 0, [], [])
    while totals.rounds < rounds and not totals.violations:
        totals = _round(versions, Random(f"{seed}.{totals.rounds}"), etcd, steps, totals)
        progress(str(totals))
    return totals


def _round(
    versions: Versions, random: Random, etcd: bool, steps: Sequence[str], totals: UpgradeTotals
) -> UpgradeTotals:
    with copying_cluster(etcd, versions.before) as (cluster, scratch), ExitStack() as stack:
        feed = Feed(cluster.bootstrap)
        feed.start()
        copiers = [Copier(number, cluster.bootstrap, scratch / f"copier-{number}") for number in range(2)]
        for copier in copiers:
            copier.start()
            stack.callback(copier.kill)
        rolling = Rolling(cluster, versions, random)
        try:
            refusals: list[str] = []
            for step in steps:
                refusals += rolling.take(step)
            feed.end()
            copies = copies_of(cluster.bootstrap, feed.acknowledged, copiers)
        except Exception as error:
            error.add_note(cluster.last_words())
            raise
        violations = [*feed.failures, *violations_of(feed.acknowledged, copies), *refusals]
        if violations:
            violations += [f"a copier: {copier.last_words()}" for copier in copiers]
            violations.append(cluster.last_words())
    return UpgradeTotals(
        totals.rounds + 1,
        totals.changes + rolling.change_count,
        totals.kills + rolling.kill_count,
        totals.fed + feed.count,
        totals.copied + sum(map(len, copies)),
        [*totals.pauses_s, feed.pause_s_max],
        [*totals.violations, *violations],
    )


class Rolling:
    """A cluster whose nodes change their version, one by one."""

    def __init__(self, cluster: ClusterProcesses, versions: Versions, random: Random) -> None:
        self.change_count = 0
        self.kill_count = 0
        self._cluster = cluster
        self._versions = versions
        self._random = random

    def take(self, step: str) -> list[str]:
        """What is wrong after it."""
        if step == "final":
            self.finalize()
            return self.check_refused()
        self.roll(self._versions.this if step == "up" else self._versions.before)
        return []

    def roll(self, program: Program) -> None:
        for number in self._random.sample(range(len(self._cluster.nodes)), len(self._cluster.nodes)):
            node = self._cluster.nodes[number]
            self._end(node)
            node.program = program
            node.begin()
            if self._random.random() < 0.5:
                time.sleep(self._random.uniform(0, 2))
                self._kill(node)
                node.begin()
            node.wait_until_ready()
            self.change_count += 1
            self._cluster.wait_until_healed(SOURCE, PARTITION_COUNT)

    def finalize(self) -> None:
        """While a node is killed at some instant; what was not said is said again."""
        victim = self._random.choice(self._cluster.nodes)
        killer = threading.Timer(self._random.uniform(0, 1.5), self._kill, [victim])
        killer.start()
        self._finalize()
        killer.join()
        victim.start()
        self._cluster.wait_until_healed(SOURCE, PARTITION_COUNT)
        code, said = self._finalize()
        if code != 0 or f"level {OURS.level_max} is in force" not in said:
            raise RuntimeError(f"the level was not raised: {said}")

    def check_refused(self) -> list[str]:
        """A node of the release before does not start any more, and says why in one line; with this version it does."""
        node = self._cluster.nodes[-1]
        self._end(node)
        node.program = self._versions.before
        node.begin()
        code = node.wait_until_ended(within_s=REFUSED_WITHIN_S)
        last = node.last_words().strip().splitlines()[-1]
        node.program = self._versions.this
        node.start()
        self._cluster.wait_until_healed(SOURCE, PARTITION_COUNT)
        is_refused = code not in (0, None) and REFUSAL in last
        return (
            []
            if is_refused
            else [f"a node of {BEFORE} was not refused in one line but ended with {code}: {last}"]
        )

    def _finalize(self) -> tuple[int, str]:
        program = self._versions.this
        done = subprocess.run(
            [*program.command, "cluster", "upgrade", "finalize", "-b", self._cluster.bootstrap],
            env={**os.environ, **program.environment},
            capture_output=True,
            check=False,
            timeout=COMMAND_WITHIN_S,
        )
        return done.returncode, (done.stdout + done.stderr).decode()

    def _end(self, node: NodeProcess) -> None:
        if self._random.random() < 0.5:
            self._kill(node)
        else:
            node.stop()

    def _kill(self, node: NodeProcess) -> None:
        self.kill_count += 1
        node.kill()


def _program(packages: Path, *settings: str) -> Program:
    return Program((sys.executable, "-m", "ropewalk"), {"PYTHONPATH": str(packages)}, settings)
