"""One seed of a cluster of whole nodes: from empty disks to a verdict.

A cluster forms and topics are made; clients and an administrator work while one fault follows the other; then everything is
healed. Within a bounded time every partition must be led, in step and equal everywhere; often the power is cut on all machines
after that, so that nothing is believed that is not on a platter; and everything is read and compared.
"""

import asyncio
from typing import Final

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.sim.checker import Violation, check
from ropewalk.sim.cluster.administrator import Administrator
from ropewalk.sim.cluster.consumers import ClusterConsumer, FinalClusterReader
from ropewalk.sim.cluster.faults import ClusterNemesis
from ropewalk.sim.cluster.guide import KAFKA_PORT, Guide
from ropewalk.sim.cluster.judge import MetadataJudge, WatchedFacts
from ropewalk.sim.cluster.members import Members
from ropewalk.sim.cluster.producers import IdempotentClusterProducer, PlainClusterProducer
from ropewalk.sim.cluster.rest import differences, unrest
from ropewalk.sim.cluster.sometimes import EXPECTED
from ropewalk.sim.etcd import ModelledEtcd
from ropewalk.sim.link import LinkLost
from ropewalk.sim.loop import Overtime, Stuck
from ropewalk.sim.scenario import Outcome
from ropewalk.sim.sometimes import EXPECTED as EXPECTED_OF_A_NODE
from ropewalk.sim.sometimes import Sometimes
from ropewalk.sim.workload import Workload
from ropewalk.sim.world import World
from ropewalk.wire.error_code import ErrorCode

WORK_S: Final = 20.0
FORM_S: Final = 40.0
"""A cluster without faults has formed long before."""

REST_S: Final = 90.0
"""Time enough for sessions to end, nodes to come back and replicas to catch up, several times over."""

FORCE_S: Final = 15.0
"""When nobody is coming back who could lead a partition that may lose records, an operator forces somebody to."""

LIMIT_S: Final = 400.0

OPERATIONS_MIN: Final = 50
FAULTS_MIN: Final = 3

_LOSSY: Final = ("brisk", "late-os")
"""Topics with `flush=os`: the power may take records, if it fails on enough machines; the cluster says so then."""


class Restless(Exception):
    """The cluster did not come to rest in time."""


def run_seed(seed: int) -> Outcome:
    with World(f"cluster {seed}", Sometimes((*EXPECTED, *EXPECTED_OF_A_NODE))) as world:
        world.loop.sorts_steps = True
        scenario = ClusterScenario(world)
        violations: list[Violation] = []
        try:
            world.run(scenario.play(), limit_s=LIMIT_S)
        except* (Overtime, Stuck) as group:
            violations += [Violation("stuck", f"{error}; {scenario.plight()}") for error in group.exceptions]
        except* Restless as group:
            violations += [Violation("restless", str(error)) for error in group.exceptions]
        except* Exception as group:  # noqa: BLE001  # whatever a run dies of is its result
            violations += [Violation("crashed", _describe(group))]
        violations = [
            *scenario.judge.violations,
            *violations,
            *check(scenario.workload.journal.events),
            *scenario.findings,
        ]
        violations += scenario.shortcomings() if not violations else []
        return Outcome(
            seed,
            world.trace.hexdigest(),
            world.now_s,
            world.loop.step_count,
            scenario.workload.operation_count,
            scenario.nemesis.fault_count,
            dict(sorted(scenario.sometimes().items())),
            tuple(str(violation) for violation in violations),
        )


class ClusterScenario:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = rng = world.rng_for("scenario")
        self.workload = Workload(world, ("node0", KAFKA_PORT), until_s=FORM_S)
        self.judge = MetadataJudge(
            self.workload.journal, world.sometimes, lambda name: name.startswith(_LOSSY)
        )
        self._etcd = ModelledEtcd(world) if rng.random() < 0.6 else None
        self._node_count = rng.choice([3, 3, 3, 5])
        settings = (
            f"node.session.timeout.ms={rng.choice([1500, 1500, 3000, 6000])}",
            f"replica.lag.time.max.ms={rng.choice([700, 1000, 3000, 10_000])}",
        )
        self.members = Members(
            world,
            self.workload.journal,
            count=self._node_count,
            settings=settings,
            etcd=self._etcd,
            watched_facts=lambda: WatchedFacts(self.judge),
        )
        self.nemesis = ClusterNemesis(self.workload, self.members, self.judge.image, self.judge.emptied)
        self._administrator = Administrator(
            self._guide("administrator"), self._node_count, may_move=rng.random() < 0.5
        )
        self._writers: list[IdempotentClusterProducer] = []
        self.findings: list[Violation] = []

    async def play(self) -> None:
        if self._etcd is not None:
            await self._etcd.start()
        async with asyncio.TaskGroup() as group:
            keeping = [group.create_task(member.keep_running()) for member in self.members.by_id.values()]
            await self._until_at_rest(within_s=FORM_S)
            await self._make_topics()
            self.workload.until_s = self._world.now_s + WORK_S
            async with asyncio.TaskGroup() as clients:
                self._start_clients(clients)
                clients.create_task(self.nemesis.run())
                clients.create_task(self._look_on())
            await self._conclude()
            for task in keeping:
                task.cancel()

    def plight(self) -> str:
        """For whoever has to explain why nothing went on."""
        states = [
            f"{member.machine.name} {_state(member.machine.has_started, member.machine.is_running)}"
            for member in self.members.by_id.values()
        ]
        return f"{', '.join(states)}; {unrest(self.members, self.judge.image)}"

    def sometimes(self) -> dict[str, int]:
        counts = dict(self._world.sometimes.counts)
        if self._etcd is not None:
            for what, count in self._etcd.happened.items():
                counts[what] = counts.get(what, 0) + count
        return counts

    def shortcomings(self) -> list[Violation]:
        """A run that did too little proves too little."""
        done = f"{self.workload.operation_count} operations, {self.nemesis.fault_count} faults"
        is_idle = self.workload.operation_count < OPERATIONS_MIN or self.nemesis.fault_count < FAULTS_MIN
        return [Violation("idle", done)] if is_idle else []

    async def _make_topics(self) -> None:
        for name, partitions, flush in (("sturdy", self._rng.randrange(1, 3), "group"), ("brisk", 1, "os")):
            code = await self._administrator.create(name, partitions=partitions, flush=flush)
            assert code == ErrorCode.NONE, f"{name} cannot be made in a cluster without faults: {code.name}"

    def _start_clients(self, clients: asyncio.TaskGroup) -> None:
        rng = self._rng
        for number in range(rng.randrange(1, 3)):
            guide = self._guide(f"plain-{number}")
            clients.create_task(PlainClusterProducer(guide, acks=rng.choice([-1, -1, 1])).run())
        for number in range(rng.randrange(1, 4)):
            partition = self.workload.draw_partition(rng)
            writer = IdempotentClusterProducer(self._guide(f"idempotent-{number}"), partition)
            self._writers.append(writer)
            clients.create_task(writer.run())
        for number in range(rng.randrange(1, 3)):
            clients.create_task(ClusterConsumer(self._guide(f"consumer-{number}")).run())
        clients.create_task(self._administrator.run())

    async def _look_on(self) -> None:
        """For what nobody does, and what happens all the same."""
        while not self.workload.is_over:
            for node in self.members.serving:
                for led in node.partitions.all_led():
                    topic = self.judge.image.topics_by_id.get(led.topic_id)
                    if topic and topic.partitions[led.name.partition].leader not in (None, node.node_id):
                        self._world.sometimes.note("a deposed leader still led by its own account")
            await asyncio.sleep(0.25)

    async def _conclude(self) -> None:
        await self.nemesis.heal()
        self.workload.until_s = LIMIT_S
        await self._until_at_rest(within_s=REST_S)
        await self._send_what_is_left()
        if self._rng.random() < 0.5:
            for member in self.members.by_id.values():
                member.machine.cut_power()
        await self._until_at_rest(within_s=REST_S)
        reader = FinalClusterReader(self._guide("final"))
        for partition in self.workload.topics.partitions:
            await reader.read(partition)
        await self._until_at_rest(within_s=REST_S)
        self.findings += differences(self.members, self.judge.image, set[tuple[NodeId, TopicPartition]]())
        self.findings += self._administrator.complaints(self.judge.image)

    async def _send_what_is_left(self) -> None:
        """An idempotent producer whose partition has lost records may be refused for ever; no other."""
        lost = {TopicPartition(self._name_of(loss.topic_id), loss.index) for loss in self.judge.image.losses}
        began_s = self._world.now_s
        for writer in self._writers:
            while writer.partition not in lost and not await writer.conclude():
                if self._world.now_s - began_s > REST_S:
                    raise Restless(f"{writer.caller.name} cannot write to {writer.partition}")
                await asyncio.sleep(0.1)

    async def _until_at_rest(self, *, within_s: float) -> None:
        began_s = self._world.now_s
        while (complaint := unrest(self.members, self.judge.image)) is not None:
            waited_s = self._world.now_s - began_s
            if waited_s > within_s:
                raise Restless(f"after {waited_s:.0f} s: {complaint}; {self.plight()}")
            if waited_s > FORCE_S:
                await self._force()
            await asyncio.sleep(0.2)

    async def _force(self) -> None:
        for topic in self.judge.image.topics.values():
            for partition in topic.partitions:
                if partition.leader is None and self.judge.may_lose(topic.topic_id, partition.index):
                    try:
                        await self._administrator.force(TopicPartition(topic.name, partition.index))
                    except LinkLost:
                        continue

    def _name_of(self, topic_id: bytes) -> str:
        return self.workload.topics.find_name(topic_id) or ""

    def _guide(self, name: str) -> Guide:
        return Guide(self.workload, name, self.members.names)


def _state(has_started: bool, is_running: bool) -> str:
    return "is in service" if has_started else "is starting" if is_running else "is gone"


def _describe(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_describe(inner) for inner in error.exceptions)
    traceback, where = error.__traceback__, []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        where.append(f"{code.co_filename.rpartition('ropewalk/')[2]}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {error} ({' < '.join(reversed(where[-5:]))})"
