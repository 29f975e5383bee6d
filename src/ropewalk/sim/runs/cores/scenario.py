"""One seed at the level of cores: from empty disks to a verdict.

A cluster forms and topics are made; clients work while one fault follows the other; then everything is healed, and within
a bounded time every partition must be led, in step and equal everywhere.
"""

import random
from collections.abc import Sequence
from typing import Final

from ropewalk.base.ids import NodeId
from ropewalk.base.limits import METADATA_APPEND_BYTES_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.metadata.settings.effective import SettingsView
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace
from ropewalk.sim.runs.cores.administrator import Administrator
from ropewalk.sim.runs.cores.clients import Consumer, Crowd, Producer
from ropewalk.sim.runs.cores.faults import FAULT_PAUSES_US, Nemesis
from ropewalk.sim.runs.cores.home import Home
from ropewalk.sim.runs.cores.judge import Judge, Promises, Violation
from ropewalk.sim.runs.cores.machine import Key, Machine
from ropewalk.sim.runs.cores.network import HOME, Network
from ropewalk.sim.runs.cores.process import Surroundings, Timing
from ropewalk.sim.runs.cores.queue import EventQueue
from ropewalk.sim.runs.cores.rest import check_rest
from ropewalk.sim.runs.cores.sometimes import EXPECTED
from ropewalk.sim.runs.outcome import Outcome, complaint_of

WORK_S: Final = 60
HEAL_S: Final = 60
"""Time enough for sessions to end, brokers to come back and replicas to catch up, several times over."""

FORCE_S: Final = 15
"""When nobody is coming back who could lead a partition, an operator forces somebody to."""

SETTLE_S: Final = 3
"""Writers go on for a while when everything is healed, so that healed partitions are written to."""

OPERATIONS_MIN: Final = 30
FAULTS_MIN: Final = 5
WAITING_MAX: Final = 5_000
"""Actions in the queue of a cluster at rest (L5)."""

SECOND_US: Final = 1_000_000


def run_seed(seed: int) -> Outcome:
    scenario = Scenario(seed)
    complaint = complaint_of(scenario.play, Violation)
    at_s = scenario.queue.now_us / SECOND_US
    return Outcome(
        seed,
        scenario.trace.hexdigest(),
        at_s,
        scenario.queue.done_count,
        scenario.crowd.operation_count,
        scenario.nemesis.fault_count,
        dict(sorted(scenario.sometimes.counts.items())),
        () if complaint is None else (f"{at_s:.3f} s: {complaint}",),
        () if complaint is None else scenario.last_words(),
    )


class Scenario:
    def __init__(self, seed: int) -> None:
        rng = random.Random(f"{seed}/cores")
        self._rng = rng
        self.queue = EventQueue()
        self.trace = Trace(recent_count=40)
        self.sometimes = Sometimes(EXPECTED)
        node_count = rng.choice((3, 3, 3, 5))
        self._machines = {
            NodeId(number): Machine(NodeId(number), random.Random(f"{seed}/machine-{number}"))
            for number in range(node_count)
        }
        self._judge = Judge(self._machines, self.sometimes)
        network = Network(self.queue, random.Random(f"{seed}/network"))
        self._home = Home(
            self.queue,
            network,
            random.Random(f"{seed}/home"),
            self.sometimes,
            self._on_committed,
            address=HOME if rng.random() < 0.75 else 0,
        )
        self._settings = AppliedSettings(SettingsView(self._home.image, NodeId(0), {}))
        self._judge.promises_of = self._promises_of
        timing = Timing(
            session_timeout_ms=rng.choice((1_500, 3_000, 6_000)),
            lag_ms_max=rng.choice((700, 2_000, 5_000)),
            straggler_ms=rng.choice((None, None, 100, 400)),
        )
        self._around = Surroundings(
            self.queue,
            network,
            self._home,
            self._judge,
            self.sometimes,
            self.trace,
            timing,
            random.Random(f"{seed}/processes"),
            append_bytes_max=rng.choice((METADATA_APPEND_BYTES_MAX, METADATA_APPEND_BYTES_MAX, 450)),
        )
        if rng.random() < 0.6:
            for machine in self._machines.values():
                machine.configuration = _configuration(rng)
        self.nemesis = Nemesis(
            self._around,
            self._machines,
            random.Random(f"{seed}/nemesis"),
            pause_us=rng.choice(FAULT_PAUSES_US),
        )
        self.crowd = Crowd(self._around, random.Random(f"{seed}/clients"))

    def play(self) -> None:
        for node_id in self._machines:
            self.nemesis.start(node_id)
        self._run_until_s(5)
        self._administrator = Administrator(self.crowd, pause_us=self._rng.choice((2_000_000, 6_000_000)))
        self._make_topics()
        self.nemesis.begin()
        if self._rng.random() < 0.4:
            self._administrator.juggle()
        self._start_clients()
        self._run_until_s(WORK_S)
        self.nemesis.heal()
        self._run_until_s(WORK_S + SETTLE_S)
        self.crowd.is_writing = False
        self._await_rest()
        self._administrator.check()
        self._check_effort()

    def last_words(self) -> tuple[str, ...]:
        """What happened last, for whoever has to explain it."""
        return tuple(" ".join(_shown(fact) for fact in facts) for facts in self.trace.recent)

    def _on_committed(self, records: Sequence[MetadataRecord], image: Image) -> None:
        for record in records:
            self.trace.note(self.queue.now_us, "committed", str(record))
        self._judge.on_committed(records, image)

    def _make_topics(self) -> None:
        kinds: list[tuple[str, int, int | None, str | None]] = [
            ("sturdy", 3, 2, "group"),
            ("brisk", 3, 2, "os"),
            ("usual", 3, None, None),
        ]
        kinds += self._rng.choice(
            ([], [("lone", 1, 1, "group")], [("loose", 3, 1, "group")], [("pair", 2, 1, "group")])
        )
        for name, replicas, minimum, flush in kinds:
            for _ in range(20):
                self._administrator.create(
                    name, replicas=replicas, minimum=minimum, flush=flush, is_tried_again=True
                )
                self._run_until_s(self.queue.now_us / SECOND_US + 0.5)
                if name in self._home.image.topics:
                    break
            else:
                raise Violation("L1", f"topic {name} cannot be made in a cluster without faults")

    def _start_clients(self) -> None:
        rng = self._rng
        pause_us = rng.choice((80_000, 200_000, 500_000))
        for number in range(rng.randrange(2, 5)):
            Producer(self.crowd, number, is_idempotent=number % 2 == 1, pause_us=pause_us)
        for number in range(10, 10 + rng.randrange(1, 3)):
            Consumer(self.crowd, number, pause_us=400_000)

    def _await_rest(self) -> None:
        while True:
            self._run_until_s(self.queue.now_us / SECOND_US + 1)
            try:
                images = [(process.node_id, process.image) for process in self._around.processes.values()]
                check_rest(self._judge, self._machines, self._home.image, images)
            except Violation:
                if self.queue.now_us > (WORK_S + HEAL_S) * SECOND_US:
                    raise
                if self.queue.now_us > (WORK_S + FORCE_S) * SECOND_US:
                    self._administrator.force()
                continue
            break
        if len(self.queue) > WAITING_MAX:
            raise Violation("L5", f"{len(self.queue)} actions wait in a cluster at rest")

    def _check_effort(self) -> None:
        """A run that did too little proves too little."""
        if self.crowd.operation_count < OPERATIONS_MIN or self.nemesis.fault_count < FAULTS_MIN:
            raise Violation(
                "idle", f"{self.crowd.operation_count} operations, {self.nemesis.fault_count} faults"
            )

    def _run_until_s(self, end_s: float) -> None:
        self.queue.run_until(int(end_s * SECOND_US))

    def _promises_of(self, image: Image, key: Key) -> Promises:
        topic = image.topics_by_id[key[0]]
        minimum = self._settings.minimum_in_sync(topic, topic.partitions[key[1]])
        applied = self._settings.of_topic(topic)
        is_sturdy = minimum > 1 and applied.flush == "group" and not applied.unclean_leader_election_enable
        return Promises(minimum, is_sturdy)


def _configuration(rng: random.Random) -> dict[str, str]:
    """What one node's file says of settings that all must agree on. The files of others may say something else."""
    said = {
        "flush": rng.choice((None, None, "os", "group")),
        "min.insync.replicas": rng.choice((None, None, "1", "2", "3")),
        "unclean.leader.election.enable": rng.choice((None, None, None, "true")),
    }
    return {name: value for name, value in said.items() if value is not None}


def _shown(fact: object) -> str:
    return fact.hex()[:6] if isinstance(fact, bytes) else str(fact)
