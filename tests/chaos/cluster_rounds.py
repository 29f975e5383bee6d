"""Rounds of destruction on a cluster: load, a fault, its end, and a check of everything.

kill    kill -9 of one node
pause   one node stands still for a while, and goes on as if nothing had been
cut     one node is cut off from the others, in one direction or both, and clients still reach it
loss    packets get lost on their way to one node
power   power cut of one node, on a file system that forgets what was not synced
dark    power cut of all nodes at once
stop    one node is stopped in order

Local metadata are kept by the first node: while that one is away nothing can be acknowledged that needs a change of
replicas in sync, so nothing is waited for then. With etcd any node may go.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.chaos.cluster import ClusterProcesses
from tests.chaos.etcd import EtcdProcesses
from tests.chaos.load import PARTITION_COUNT, TOPIC, Load
from tests.chaos.mounts import LossyMount
from tests.chaos.rounds import complaints
from tests.chaos.wires import Wires

KINDS = ("kill", "pause", "cut", "loss", "power", "dark", "stop")
PAUSE_S_MAX = 8.0
"""Longer than a node may be silent before it is fenced."""
CHECK_EVERY = 5
ACKNOWLEDGED_WITHIN_S = 90


class ClusterTotals(NamedTuple):
    """What a run amounted to. `violations` are complaints; a good run has none."""

    rounds: dict[str, int]
    acknowledged: int
    consumed: int
    failovers_s: list[float]
    """From the end of a node that led something to new leaders for all of it."""
    healings_s: list[float]
    violations: list[str]

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.rounds.items() if count)
        return (
            f"{sum(self.rounds.values())} rounds ({kinds}), {self.acknowledged} records acknowledged, "
            f"{self.consumed} consumed, new leaders after {_spread(self.failovers_s)}, "
            f"all in sync after {_spread(self.healings_s)}, {len(self.violations)} violations"
        )


def run(
    kinds: Sequence[str],
    rounds: int,
    *,
    node_count: int = 3,
    etcd: bool = False,
    seed: int = 0,
    settings: tuple[str, ...] = (),
    records_per_round: int = 1_000,
    progress: Callable[[str], None] = lambda _: None,
) -> ClusterTotals:
    """Stops at the first round with a violation. What the kinds need (root, FUSE) must be there."""
    random = Random(seed)
    with _surroundings(kinds, node_count, etcd, seed) as (scratch, wires, mounts, members):
        data = [
            (mounts[number].path if mounts else scratch) / f"data-{number}" for number in range(node_count)
        ]
        endpoints = members.endpoints if members is not None else None
        cluster = ClusterProcesses(data, scratch, wires=wires, etcd=endpoints, settings=settings)
        destruction = Destruction(cluster, wires, mounts, random)
        totals = ClusterTotals(dict.fromkeys(kinds, 0), 0, 0, destruction.failovers_s, [], [])
        try:
            cluster.start()
            load = Load(cluster.bootstrap, replication_factor=node_count)
            load.make_topic(TOPIC, PARTITION_COUNT)
            totals.healings_s.append(cluster.wait_until_healed(TOPIC, PARTITION_COUNT))
            with load.running():
                while sum(totals.rounds.values()) < rounds and not complaints(load):
                    kind = random.choice(kinds)
                    load.grant(2 * records_per_round)
                    load.wait_for(random.randrange(1, records_per_round), within_s=ACKNOWLEDGED_WITHIN_S)
                    progress(f"{kind} …")
                    destruction.bring(kind, load, records_per_round)
                    totals.healings_s.append(cluster.wait_until_healed(TOPIC, PARTITION_COUNT))
                    totals.rounds[kind] += 1
                    if sum(totals.rounds.values()) % CHECK_EVERY == 0:
                        load.check()
                    progress(f"round {sum(totals.rounds.values())}: {load.acknowledged_count} acknowledged")
            load.check()
            cluster.wait_until_healed(TOPIC, PARTITION_COUNT)
            exit_codes = cluster.stop()
        except Exception as error:
            error.add_note(cluster.last_words())
            raise
        finally:
            cluster.kill()
        violations = complaints(load)
        violations += [f"a node ended with {code} when asked to stop" for code in exit_codes if code != 0]
        violations += cluster.differing_replicas(TOPIC, PARTITION_COUNT)
        return totals._replace(
            acknowledged=load.acknowledged_count, consumed=load.consumed_count, violations=violations
        )


class Destruction:
    """Each kind of fault, from its beginning to its end."""

    def __init__(
        self,
        cluster: ClusterProcesses,
        wires: Wires | None,
        mounts: Sequence[LossyMount],
        random: Random,
    ) -> None:
        self.failovers_s: list[float] = []
        self._cluster = cluster
        self._wires = wires
        self._mounts = mounts
        self._random = random

    def bring(self, kind: str, load: Load, records: int) -> None:
        victim = self._random.randrange(0, len(self._cluster.nodes))
        if kind == "dark":
            self._dark()
            return
        begin: dict[str, Callable[[int], None]] = {
            "kill": lambda victim: self._cluster.nodes[victim].kill(),
            "power": self._cut_power,
            "pause": lambda victim: self._cluster.nodes[victim].freeze(),
            "cut": self._cut,
            "loss": lambda victim: self._at_wires().lose(victim, 30),
            "stop": self._stop,
        }
        begin[kind](victim)
        is_away = kind in ("kill", "power", "stop")
        is_missed = not (self._cluster.has_local_home and victim == 0)
        if is_away and is_missed:
            self.failovers_s.append(self._cluster.wait_for_new_leaders(TOPIC, victim))
        if is_missed:  # the others go on meanwhile
            load.grant(records)
            load.wait_for(self._random.randrange(1, records // 2), within_s=ACKNOWLEDGED_WITHIN_S)
        if kind in ("pause", "cut", "loss"):
            time.sleep(self._random.uniform(0.5, PAUSE_S_MAX))  # how long the fault lasts
        if is_away:
            self._cluster.nodes[victim].start()
        elif kind == "pause":
            self._cluster.nodes[victim].thaw()
        else:
            self._at_wires().heal()

    def _dark(self) -> None:
        for node in self._cluster.nodes:
            node.freeze()  # nobody acknowledges anything after the first has lost its power
        for number, node in enumerate(self._cluster.nodes):
            node.kill()
            self._mounts[number].cut_power()
        self._cluster.start()

    def _cut_power(self, victim: int) -> None:
        self._cluster.nodes[victim].kill()
        self._mounts[victim].cut_power()

    def _cut(self, victim: int) -> None:
        others = [number for number in range(len(self._cluster.nodes)) if number != victim]
        hears, speaks = self._random.choice([(False, False), (False, False), (True, False), (False, True)])
        self._at_wires().cut(victim, others, hears=hears, speaks=speaks)

    def _stop(self, victim: int) -> None:
        code = self._cluster.nodes[victim].stop()
        if code != 0:
            raise RuntimeError(f"node {victim} ended with {code} when asked to stop")

    def _at_wires(self) -> Wires:
        assert self._wires is not None, "these kinds come with wires"
        return self._wires


@contextmanager
def _surroundings(
    kinds: Sequence[str], node_count: int, etcd: bool, seed: int
) -> Iterator[tuple[Path, Wires | None, list[LossyMount], EtcdProcesses | None]]:
    """In memory where possible: power cuts are modelled, and real disks would only make it slow."""
    in_memory = Path("/dev/shm")
    with ExitStack() as stack:
        place = in_memory if in_memory.is_dir() else None
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-", dir=place)))
        wires = stack.enter_context(Wires(node_count)) if {"cut", "loss"} & set(kinds) else None
        mounts: list[LossyMount] = []
        if {"power", "dark"} & set(kinds):
            for number in range(node_count):
                own = scratch / f"disk-{number}"
                own.mkdir()
                mounts.append(stack.enter_context(LossyMount(own, seed + number)))
        members = None
        if etcd:
            host = wires.outside if wires is not None else "127.0.0.1"
            members = stack.enter_context(EtcdProcesses(scratch / "etcd", host))
        yield scratch, wires, mounts, members


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "–"
    return f"{statistics.median(seconds):.2f} s (longest {max(seconds):.2f} s)"
