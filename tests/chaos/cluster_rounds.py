"""Rounds of destruction on a cluster: load, a fault, its end, and a check of everything.

kill    kill -9 of one node
pause   one node stands still for a while, and goes on as if nothing had been
cut     one node is cut off from the others, in one direction or both, and clients still reach it
alone   one node is cut off from everything, clients and etcd included
loss    packets get lost on their way to one node
power   power cut of one node, on a file system that forgets what was not synced
dark    power cut of all nodes at once
stop    one node is stopped in order
member  kill -9 of one member of etcd
etcd    kill -9 of all of etcd, and nodes go on without it for a while
full    etcd has no space for a while, in which a node may be killed and started again
frozen  all of etcd stands still for a while, in which a node may be killed and started again
restored    etcd is put back to what it was before a topic was made: nodes leave service and say so, and go on when started again

Local metadata are kept by the first node: while that one is away nothing can be acknowledged that needs a change of
replicas in sync, so nothing is waited for then. With etcd any node may go.
"""

import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.chaos.load import PARTITION_COUNT, QUIET, TOPIC
from tests.chaos.rounds import complaints
from tests.chaos.scene import Scene, scene
from tests.chaos.wires import Wires

ETCD_KINDS = ("member", "etcd", "full", "frozen", "restored")
KINDS = ("kill", "pause", "cut", "alone", "loss", "power", "dark", "stop", *ETCD_KINDS)
FAULT_S_MAX = 8.0
"""Longer than a node may be silent before it is fenced."""
CHECK_EVERY = 5
ACKNOWLEDGED_WITHIN_S = 90
READY_NOT = 503
_PARTED = "ropewalk_metadata_parted 1"


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
    fault_s_max: float = FAULT_S_MAX,
    progress: Callable[[str], None] = lambda _: None,
) -> ClusterTotals:
    """Every kind as often as every other, in any order. Ends with the first round that has a violation.

    What the kinds need (root, FUSE) must be there.
    """
    random = Random(seed)
    deck: list[str] = []
    with scene(
        node_count=node_count,
        with_wires=bool({"cut", "alone", "loss"} & set(kinds)),
        with_mounts=bool({"power", "dark"} & set(kinds)),
        with_etcd=etcd,
        seed=seed,
        settings=settings,
    ) as playing:
        load = playing.load
        destruction = Destruction(playing, random, fault_s_max)
        totals = ClusterTotals(dict.fromkeys(kinds, 0), 0, 0, destruction.failovers_s, [], playing.violations)
        while sum(totals.rounds.values()) < rounds and not complaints(load):
            deck = deck or random.sample(kinds, len(kinds))
            kind = deck.pop()
            load.grant(2 * records_per_round)
            load.wait_for(random.randrange(1, records_per_round), within_s=ACKNOWLEDGED_WITHIN_S)
            progress(f"{kind} …")
            destruction.bring(kind, records_per_round)
            totals.healings_s.append(playing.wait_until_healed())
            totals.rounds[kind] += 1
            if sum(totals.rounds.values()) % CHECK_EVERY == 0:
                load.check()
            progress(f"round {sum(totals.rounds.values())}: {load.acknowledged_count} acknowledged")
    return totals._replace(acknowledged=load.acknowledged_count, consumed=load.consumed_count)


class Destruction:
    """Each kind of fault, from its beginning to its end."""

    def __init__(self, playing: Scene, random: Random, fault_s_max: float) -> None:
        self.failovers_s: list[float] = []
        self._cluster = playing.cluster
        self._load = playing.load
        self._wires = playing.wires
        self._mounts = playing.mounts
        self._members = playing.members
        self._random = random
        self._fault_s_max = fault_s_max

    def bring(self, kind: str, records: int) -> None:
        if kind == "restored":
            self._restore(records)
            return
        if kind in ("full", "frozen"):
            self._hinder(kind, records)
            return
        if kind in ETCD_KINDS:
            self._end_members(kind, records)
            return
        victim = self._random.randrange(0, len(self._cluster.nodes))
        if kind == "dark":
            self._dark()
            return
        begin: dict[str, Callable[[int], None]] = {
            "kill": lambda victim: self._cluster.nodes[victim].kill(),
            "power": self._cut_power,
            "pause": lambda victim: self._cluster.nodes[victim].freeze(),
            "cut": self._cut,
            "alone": lambda victim: self._at_wires().isolate(victim),
            "loss": lambda victim: self._at_wires().lose(victim, 30),
            "stop": self._stop,
        }
        begin[kind](victim)
        is_away = kind in ("kill", "power", "stop")
        is_missed = not (self._cluster.has_local_home and victim == 0)
        if is_away and is_missed:
            self.failovers_s.append(self._cluster.wait_for_new_leaders(TOPIC, victim))
        if is_missed:  # the others go on meanwhile
            self._go_on(records)
        if kind in ("pause", "cut", "alone", "loss"):
            self._last()
        if is_away:
            self._cluster.nodes[victim].start()
        elif kind == "pause":
            self._cluster.nodes[victim].thaw()
        else:
            self._at_wires().heal()

    def _go_on(self, records: int) -> None:
        self._load.grant(records)
        self._load.wait_for(self._random.randrange(1, records // 2), within_s=ACKNOWLEDGED_WITHIN_S)

    def _last(self) -> None:
        """How long a fault lasts that does not end by itself."""
        time.sleep(self._random.uniform(0.5, self._fault_s_max))

    def _end_members(self, kind: str, records: int) -> None:
        members = self._members
        assert members is not None, "these kinds come with etcd"
        everybody = range(members.member_count)
        ended = everybody if kind == "etcd" else [self._random.choice(everybody)]
        for member in ended:
            members.kill(member)
        self._go_on(records)
        self._last()
        self._go_on(records)
        for member in ended:
            members.start(member)
        members.wait_until_healthy()

    def _hinder(self, kind: str, records: int) -> None:
        """Nothing about the cluster can change for a while; leaders go on, and nobody needs a hand afterwards."""
        members = self._members
        assert members is not None, "these kinds come with etcd"
        begin, end = {
            "full": (members.fill, members.make_room),
            "frozen": (lambda: members.signal(signal.SIGSTOP), lambda: members.signal(signal.SIGCONT)),
        }[kind]
        begin()
        self._go_on(records)
        victim = self._random.choice([None, *self._cluster.nodes])
        if victim is not None:
            victim.kill()
            victim.begin()
        self._last()
        if any(not node.is_running for node in self._cluster.nodes):
            raise RuntimeError(f"a node has ended while etcd was {kind}\n{self._cluster.last_words()}")
        end()
        members.wait_until_healthy()
        if victim is not None:
            victim.wait_until_ready()

    def _restore(self, records: int) -> None:
        """Everybody is in sync when it happens, so that the replicas that counted then are those that count now."""
        members = self._members
        assert members is not None, "these kinds come with etcd"
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch) / "copy"
            members.copy(copy)
            self._cluster.wait_until_healed(TOPIC, PARTITION_COUNT)
            self._make(f"lost-{self._random.randrange(1_000_000)}")
            self._go_on(records)
            self._cluster.wait_until_healed(TOPIC, PARTITION_COUNT)
            members.put_back(copy)
        for node in self._cluster.nodes:
            status = node.wait_until_page_says("/readyz", "it has left service until it is started again")
            if status != READY_NOT:
                raise RuntimeError(f"a node that left service is ready: {status}")
            if _PARTED not in node.page("/metrics")[1].splitlines():
                raise RuntimeError("a node that left service does not count it")
        for node in self._cluster.nodes:
            node.kill()
        self._cluster.start()

    def _make(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, **QUIET})
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(
            timeout=30
        )

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


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return "–"
    return f"{statistics.median(seconds):.2f} s (longest {max(seconds):.2f} s)"
