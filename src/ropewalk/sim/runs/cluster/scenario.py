"""One seed of a cluster of whole nodes: from empty disks to a verdict.

A cluster forms and topics are made; clients and an administrator work while one fault follows the other; then everything is
healed. Within a bounded time every partition must be led, in step and equal everywhere; often the power is cut on all machines
after that, so that nothing is believed that is not on a platter; and everything is read and compared.
"""

import asyncio
from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.sim.judges.checker import Violation, check
from ropewalk.sim.machines.exertion import Exertion
from ropewalk.sim.machines.sometimes import EXPECTED as EXPECTED_OF_A_NODE
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.world import World
from ropewalk.sim.runs.cluster.administrator import Administrator
from ropewalk.sim.runs.cluster.consumers import ClusterConsumer, FinalClusterReader
from ropewalk.sim.runs.cluster.forsaken import Forsaken
from ropewalk.sim.runs.cluster.greedy import Greedy
from ropewalk.sim.runs.cluster.guide import Guide
from ropewalk.sim.runs.cluster.producers import IdempotentClusterProducer, PlainClusterProducer
from ropewalk.sim.runs.cluster.putting_back import PuttingBack
from ropewalk.sim.runs.cluster.rest import differences
from ropewalk.sim.runs.cluster.sometimes import EXPECTED
from ropewalk.sim.runs.cluster.spoilt import Spoilt
from ropewalk.sim.runs.cluster.stage import LIMIT_S, REST_S, Restless, Stage, run_on_stage
from ropewalk.sim.runs.cluster.topics import LOSSY, STURDY, draw_topics, may_trim
from ropewalk.sim.runs.cluster.trimmer import StartJudge, Trimmer
from ropewalk.sim.runs.cluster.upgrades import Upgrades
from ropewalk.sim.runs.outcome import Outcome, shortcomings
from ropewalk.wire.error_code import ErrorCode

WORK_S: Final = 20.0
OPERATIONS_MIN: Final = 50
FAULTS_MIN: Final = 3
WEIGHED_SHARE: Final = 0.15
"""Of the runs: counting every call of a function makes one several times as long."""

FORSAKEN_SHARE: Final = 0.6
"""Of the runs in which records are deleted. It takes several nodes down for seconds, so others see to other things."""

SPOILT_SHARE: Final = 0.25
"""Of the runs: it takes all replicas of a partition down for a while."""

_BROAD_PARTITIONS: Final = 200


def run_seed(
    seed: int,
    *,
    kernel_syncs: bool = False,
    mixed_levels: bool = False,
    settings: tuple[str, ...] = (),
) -> Outcome:
    """`mixed_levels`: nodes change their version in any case, as they do in some runs. `settings` are all nodes'; with `peer.tls=require`
    a run does not follow from its seed alone, since OpenSSL draws for itself."""
    sometimes = Sometimes((*EXPECTED, *EXPECTED_OF_A_NODE))
    with World(f"cluster {seed}", sometimes, kernel_syncs=kernel_syncs) as world:
        world.loop.sorts_steps = True
        world.loop.exertion = Exertion(weighs_turns=world.rng_for("exertion").random() < WEIGHED_SHARE)
        return run_on_stage(seed, world, ClusterScenario(world, mixed_levels=mixed_levels, settings=settings))


class ClusterScenario:
    def __init__(self, world: World, *, mixed_levels: bool = False, settings: tuple[str, ...] = ()) -> None:
        self._world = world
        self.stage = Stage(
            world,
            lambda name: name.startswith(LOSSY),
            settings=settings,
            may_have_racks=True,
            may_have_front_end=True,
            spoils_disks=True,
            may_upgrade=True,
            must_upgrade=mixed_levels,
        )
        self._rng = self.stage.rng
        self._starts = StartJudge()
        self._workload = self.stage.workload
        self._administrator = Administrator(
            self._guide("administrator"), self.stage.node_count, may_move=self._rng.random() < 0.5
        )
        self._writers: list[IdempotentClusterProducer] = []
        self._findings: list[Violation] = []
        self._upgrades = Upgrades(
            self._guide("operator"), self.stage.members, self.stage.judge.image, world.rng_for("upgrades")
        )
        self._putting_back = PuttingBack(world, self.stage.members, world.rng_for("putting back"))

    async def play(self) -> None:
        async with asyncio.TaskGroup() as group:
            keeping = await self.stage.form(group)
            await self._make_topics()
            self._workload.until_s = self._world.now_s + WORK_S
            async with asyncio.TaskGroup() as clients:
                self._start_clients(clients)
                clients.create_task(self.stage.nemesis.run())
                clients.create_task(self._look_on())
                clients.create_task(self._take_a_copy())
            await self._conclude()
            for task in keeping:
                task.cancel()

    def violations(self) -> list[Violation]:
        exertion = self._world.loop.exertion
        held_up = [] if exertion is None else exertion.violations
        found = check(self._workload.journal.events, self._world.sometimes.note)
        return [*self._starts.violations, *self.stage.rot.violations, *found, *self._findings, *held_up]

    def shortcomings(self) -> list[Violation]:
        fault_count = self.stage.nemesis.fault_count
        return shortcomings(self._workload, fault_count, operations_min=OPERATIONS_MIN, faults_min=FAULTS_MIN)

    async def _make_topics(self) -> None:
        for sort in draw_topics(self._rng, self.stage.node_count):
            code = await self._administrator.make(sort)
            assert code == ErrorCode.NONE, (
                f"{sort.name} cannot be made in a cluster without faults: {code.name}"
            )
        if self._is_weighed:  # nobody writes there; whatever befalls the nodes concerns all of it
            self._world.sometimes.note("turns of the loop were weighed")
            await self._administrator.create_silent("broad", partitions=_BROAD_PARTITIONS)

    @property
    def _is_weighed(self) -> bool:
        exertion = self._world.loop.exertion
        return exertion is not None and exertion.weighs_turns

    def _start_clients(self, clients: asyncio.TaskGroup) -> None:
        rng = self._rng
        if self._is_weighed:
            clients.create_task(Greedy(self._world, self._workload, self.stage.node_count).run())
        for number in range(rng.randrange(1, 3)):
            guide = self._guide(f"plain-{number}")
            clients.create_task(PlainClusterProducer(guide, acks=rng.choice([-1, -1, 1])).run())
        for number in range(rng.randrange(1, 4)):
            partition = self._workload.draw_partition(rng)
            writer = IdempotentClusterProducer(self._guide(f"idempotent-{number}"), partition)
            self._writers.append(writer)
            clients.create_task(writer.run())
        for number in range(rng.randrange(1, 3)):
            rack = rng.choice(self.stage.members.racks) if self.stage.members.racks else ""
            clients.create_task(ClusterConsumer(self._guide(f"consumer-{number}"), rack).run())
        clients.create_task(self._administrator.run())
        if self.stage.is_upgraded:
            clients.create_task(self._upgrades.run())
        if any(may_trim(partition.topic) for partition in self._workload.topics.partitions):
            trimmer = Trimmer(self._guide("trimmer"), self._starts, self.stage.judge.image, may_trim)
            clients.create_task(trimmer.run())
        self._start_act(clients)

    def _start_act(self, clients: asyncio.TaskGroup) -> None:
        """At most one, since each holds nodes down."""
        act = self._world.rng_for("act").random()
        if act > 1 - SPOILT_SHARE:
            clients.create_task(self._spoil_a_copy())
        elif act < FORSAKEN_SHARE and any(
            may_trim(partition.topic) for partition in self._workload.topics.partitions
        ):
            clients.create_task(self._forsake_a_leader())

    async def _spoil_a_copy(self) -> None:
        stage = self.stage
        await Spoilt(
            self._workload, stage.members, stage.judge.image, stage.rot, stage.nemesis.is_spare, STURDY
        ).run()

    async def _forsake_a_leader(self) -> None:
        """Whoever deletes for it has a guide of its own: the other's connections may be stuck."""
        guide, image = self._guide("forsaken"), self.stage.judge.image
        trimmer = Trimmer(guide, self._starts, image, may_trim)
        await Forsaken(guide, trimmer, self.stage.members, image).run()

    async def _look_on(self) -> None:
        """For what nobody does, and what happens all the same."""
        image, note = self.stage.judge.image, self._world.sometimes.note
        while not self._workload.is_over:
            self._look_at_starts()
            for node in self.stage.members.serving:
                for led in node.partitions.all_led():
                    topic = image.topics_by_id.get(led.topic_id)
                    if topic and topic.partitions[led.name.partition].leader not in (None, node.node_id):
                        note("a deposed leader still led by its own account")
                    if led.in_memory and led.high_watermark:
                        note("a topic in memory took records")
                    if led.followers is not None and any(
                        each.held_back for each in led.followers.core.followers.values()
                    ):
                        note("a straggler was not waited for")
            await asyncio.sleep(0.25)

    async def _take_a_copy(self) -> None:
        await asyncio.sleep(self._rng.uniform(1.0, WORK_S))
        self._putting_back.copy()

    def _look_at_starts(self) -> None:
        self._starts.look(self.stage.members.serving, self.stage.judge.image)
        self.stage.rot.look()

    async def _conclude(self) -> None:
        await self.stage.nemesis.heal()
        self._upgrades.conclude()
        self._workload.until_s = LIMIT_S
        await self._until_at_rest()
        await self._send_what_is_left()
        if self._rng.random() < 0.5:
            if self._rng.random() < 0.7:  # a copy that little is missing in is soon overtaken
                self._putting_back.copy()
            self.stage.cut_power()
        await self._until_at_rest()
        self._look_at_starts()
        if any(
            each.observers for topic in self.stage.judge.image.topics.values() for each in topic.partitions
        ):
            self._world.sometimes.note("an observer had it all")
        reader = FinalClusterReader(self._guide("final"))
        for partition in self._workload.topics.partitions:
            await reader.read(partition)
        await self._until_at_rest()
        self._findings += differences(self.stage.members, self.stage.judge.image, self.stage.rot.unmended())
        self._findings += self._administrator.complaints(self.stage.judge.image)
        if self._rng.random() < 0.4:
            self.stage.judge.end()
            self._findings += await self._putting_back.play()

    async def _send_what_is_left(self) -> None:
        """An idempotent producer whose partition has lost records may be refused for ever; no other."""
        lost = {TopicPartition(self._name_of(topic_id), index) for topic_id, index in self.stage.judge.lost}
        began_s = self._world.now_s
        for writer in self._writers:
            while writer.partition not in lost and not await writer.conclude():
                if self._world.now_s - began_s > REST_S:
                    raise Restless(f"{writer.caller.name} cannot write to {writer.partition}")
                await asyncio.sleep(0.1)

    async def _until_at_rest(self) -> None:
        await self.stage.until_at_rest(within_s=REST_S, force=self._administrator.force)

    def _name_of(self, topic_id: bytes) -> str:
        return self._workload.topics.find_name(topic_id) or ""

    def _guide(self, name: str) -> Guide:
        """Where there is a front end, every other client knows of nothing else."""
        members = self.stage.members
        names = members.broker_names
        if members.front_end_names and self._world.rng_for(f"{name}/door").random() < 0.5:
            names = members.front_end_names
            self._world.sometimes.note("a client spoke through a front end")
        return Guide(self._workload, name, names)
