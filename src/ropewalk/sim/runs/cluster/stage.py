"""What every run of a cluster of whole nodes stands on: its nodes, what befalls them, who looks on, and how it comes to rest."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import (
    METADATA_APPEND_BYTES_MAX,
    METADATA_FETCH_RECORDS_MAX,
    METADATA_LOG_BYTES_MAX,
)
from ropewalk.metadata.bounds import MetadataBounds
from ropewalk.sim.clients.link import LinkLost
from ropewalk.sim.clients.workload import Workload
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.judges.history import ClocksDrift
from ropewalk.sim.machines.etcd import ModelledEtcd
from ropewalk.sim.machines.loop import Overtime, Stuck
from ropewalk.sim.machines.world import EPOCH_MS, World
from ropewalk.sim.runs.cluster.faults import ClusterNemesis
from ropewalk.sim.runs.cluster.guide import KAFKA_PORT
from ropewalk.sim.runs.cluster.judge import MetadataJudge, WatchedFacts
from ropewalk.sim.runs.cluster.members import Members
from ropewalk.sim.runs.cluster.rest import unrest
from ropewalk.sim.runs.cluster.rot import Rot
from ropewalk.sim.runs.cluster.upgrades import BEFORE
from ropewalk.sim.runs.outcome import Outcome, describe, outcome_of

FORM_S: Final = 40.0
"""A cluster without faults has formed long before."""

REST_S: Final = 90.0
"""Time enough for sessions to end, nodes to come back and replicas to catch up, several times over."""

FORCE_S: Final = 15.0
"""When nobody is coming back who could lead a partition that may lose records, an operator forces somebody to."""

UPGRADED_SHARE: Final = 0.35

CLOCK_ERROR_MS_MAX: Final = 60_000
"""Where it matters how wrong clocks are."""

_DRIFT: Final = 0.03
"""By which part of a second clocks differ from each other, every second."""

LIMIT_S: Final = 400.0


class Restless(Exception):
    """The cluster did not come to rest in time."""


class Stage:
    def __init__(
        self,
        world: World,
        may_lose: Callable[[str], bool],
        *,
        settings: tuple[str, ...] = (),
        strikes_coordinators: bool = False,
        may_have_racks: bool = False,
        may_have_front_end: bool = False,
        spoils_disks: bool = False,
        may_upgrade: bool = False,
        must_upgrade: bool = False,
        serves_queues: bool = False,
    ) -> None:
        """`may_lose` tells by a topic's name whether it may lose records when the power fails. Where queues are served all nodes have that
        door, some have no other work, and no clock is so wrong that messages expire or ids are forgotten."""
        self.world = world
        self.rng = rng = world.rng_for("scenario")
        self.workload = Workload(world, ("node0", KAFKA_PORT), until_s=FORM_S)
        self.judge = MetadataJudge(self.workload.journal, world.sometimes, may_lose)
        self._etcd = ModelledEtcd(world) if rng.random() < 0.6 else None
        self.node_count = rng.choice([3, 3, 3, 5])
        levels = world.rng_for("versions")
        self.is_upgraded = may_upgrade and (levels.random() < UPGRADED_SHARE or must_upgrade)
        """Whether nodes are of the release before at first, and go to this one and back."""
        if self.is_upgraded:
            settings = (*settings, f"features.finalize={levels.choice(['auto', 'manual'])}")
        drawn = (
            f"node.session.timeout.ms={rng.choice([1500, 1500, 3000, 6000])}",
            f"replica.lag.time.max.ms={rng.choice([700, 1000, 3000, 10_000])}",
        )
        self.members = Members(
            world,
            self.workload.journal,
            count=self.node_count,
            settings=(*settings, *drawn),
            differing=self._differing(),
            etcd=self._etcd,
            has_racks=may_have_racks and rng.random() < 0.4,
            front_end_count=self._draw_front_ends(may_have_front_end, serves_queues),
            serves_queues=serves_queues,
            watched_facts=partial(WatchedFacts, self.judge),
            bounds=_drawn_bounds(rng),
        )
        if self.is_upgraded:
            for member in self.members.by_id.values():
                member.software = BEFORE
        if rng.random() < 0.5:
            world.sometimes.note("clocks ran at different rates")
            for member in self.members.by_id.values():
                member.machine.clock.rate = rng.choice([1 - _DRIFT, 1.0, 1 + _DRIFT])
            self.workload.journal.note(ClocksDrift(since_ms=EPOCH_MS, fraction=_DRIFT))
        self.rot = Rot(self.members, self.judge.image)
        self.nemesis = ClusterNemesis(
            self.workload,
            self.members,
            self.judge.image,
            self.judge.emptied,
            self.rot,
            strikes_coordinators=strikes_coordinators,
            spoils_disks=spoils_disks,
            clock_error_ms_max=CLOCK_ERROR_MS_MAX if serves_queues else None,
        )

    def _draw_front_ends(self, may_have_one: bool, serves_queues: bool) -> int:
        rng = self.world.rng_for("front end")
        if serves_queues:
            return rng.choice([0, 1, 2, 2])
        return int(may_have_one and rng.random() < 0.4)

    def _differing(self) -> dict[int, tuple[str, ...]]:
        """Files of nodes that will not settle the cluster's settings, and say something else about them."""
        rng = self.rng
        if self._etcd is not None or rng.random() < 0.5:
            return {}
        self.world.sometimes.note("the files of nodes differed")
        return {
            number: (
                f"flush={rng.choice(['os', 'group'])}",
                f"min.insync.replicas={rng.choice([1, 2])}",
                f"unclean.leader.election.enable={rng.choice(['true', 'false'])}",
            )
            for number in range(1, self.node_count)
        }

    async def form(self, group: asyncio.TaskGroup) -> "list[asyncio.Task[None]]":
        """Start everything, and wait until the cluster is one; the tasks keep it running until they are cancelled."""
        if self._etcd is not None:
            await self._etcd.start()
        keeping = [group.create_task(member.keep_running()) for member in self.members.by_id.values()]
        await self.until_at_rest(within_s=FORM_S)
        return keeping

    def cut_power(self) -> None:
        for member in self.members.by_id.values():
            member.machine.cut_power()

    def plight(self) -> str:
        """For whoever has to explain why nothing went on."""
        states = [
            f"{member.machine.name} {_state(member.machine.has_started, member.machine.is_running)}"
            for member in self.members.by_id.values()
        ]
        return f"{', '.join(states)}; {unrest(self.members, self.judge.image)}"

    def sometimes(self) -> dict[str, int]:
        counts = dict(self.world.sometimes.counts)
        if self._etcd is not None:
            for what, count in self._etcd.happened.items():
                counts[what] = counts.get(what, 0) + count
        return counts

    async def until_at_rest(
        self, *, within_s: float, force: Callable[[TopicPartition], Awaitable[None]] | None = None
    ) -> None:
        """`force` is asked to let somebody lead where only a loss helps, and where one breaks no promise."""
        began_s = self.world.now_s
        while (complaint := unrest(self.members, self.judge.image)) is not None:
            waited_s = self.world.now_s - began_s
            if waited_s > within_s:
                raise Restless(f"after {waited_s:.0f} s: {complaint}; {self.plight()}")
            if waited_s > FORCE_S and force is not None:
                await self._force(force)
            await asyncio.sleep(0.2)

    async def _force(self, force: Callable[[TopicPartition], Awaitable[None]]) -> None:
        for topic in self.judge.image.topics.values():
            for partition in topic.partitions:
                if partition.leader is None and self.judge.may_lose(topic.topic_id, partition.index):
                    try:
                        await force(TopicPartition(topic.name, partition.index))
                    except LinkLost:
                        continue


def _drawn_bounds(rng: random.Random) -> MetadataBounds:
    """Small ones in half of the runs: changes are cut, pages follow each other, and snapshots are taken all the time."""
    return MetadataBounds(
        # One fact must fit: of a change that makes a topic, who asked for it and what it comes to takes 800 bytes.
        append_bytes_max=rng.choice([METADATA_APPEND_BYTES_MAX, 1500]),
        page_records_max=rng.choice([METADATA_FETCH_RECORDS_MAX, 5]),
        log_bytes_max=rng.choice([METADATA_LOG_BYTES_MAX, 3_000]),
    )


class Scenario(Protocol):
    stage: Stage

    async def play(self) -> None: ...

    def violations(self) -> list[Violation]:
        """What its history proves."""

    def shortcomings(self) -> list[Violation]:
        """A run that did too little proves too little."""


def run_on_stage(seed: int, world: World, scenario: Scenario) -> Outcome:
    """From empty disks to a verdict, whatever the run dies of."""
    stage = scenario.stage
    violations: list[Violation] = []
    try:
        world.run(scenario.play(), limit_s=LIMIT_S)
    except* (Overtime, Stuck) as group:
        violations += [Violation("stuck", f"{error}; {stage.plight()}") for error in group.exceptions]
    except* Restless as group:
        violations += [Violation("restless", str(error)) for error in group.exceptions]
    except* Exception as group:  # noqa: BLE001  # whatever a run dies of is its result
        violations += [Violation("crashed", describe(group))]
    violations = [*stage.judge.violations, *violations, *scenario.violations()]
    violations += scenario.shortcomings() if not violations else []
    return outcome_of(
        seed,
        world,
        stage.workload,
        fault_count=stage.nemesis.fault_count,
        sometimes=stage.sometimes(),
        violations=violations,
    )


def _state(has_started: bool, is_running: bool) -> str:
    return "is in service" if has_started else "is starting" if is_running else "is gone"
