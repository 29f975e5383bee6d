"""One seed of a whole cluster, from empty disks to a verdict.

Nodes start, a topic with three replicas is made, producers and consumers work while one fault follows the other. Then everything is
healed. All partitions must come to be led and all replicas to be in sync within a bound; everything is read, and the copies
are compared byte by byte.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.client.admin import Admin, NewTopic
from ropewalk.client.produce import Acks
from ropewalk.metadata.image import Partition
from ropewalk.sim.checker import Violation
from ropewalk.sim.etcd import ModelledEtcd
from ropewalk.sim.loop import Overtime, Stuck
from ropewalk.sim.scenario import Outcome
from ropewalk.sim.sometimes import EXPECTED as OF_MACHINES
from ropewalk.sim.sometimes import Sometimes
from ropewalk.sim.whole.clients import Reader, Sender, client_of
from ropewalk.sim.whole.copies import compare_copies
from ropewalk.sim.whole.members import Members
from ropewalk.sim.whole.nemesis import Nemesis
from ropewalk.sim.whole.verdict import Place, Told, judge
from ropewalk.sim.world import World

WORK_S: Final = 20.0
HEAL_S_MAX: Final = 60.0
"""Liveness: by then every partition is led and every replica in sync."""

LIMIT_S: Final = 600.0
TOPIC: Final = "t"
FAULTS_MIN: Final = 3

EXPECTED: Final = (
    "a node was killed",
    "the controller was killed",
    "a node lost its power",
    "all nodes lost their power",
    "a node was stopped in order",
    "a node was cut off",
    "a node was not heard by another",
    "a connection was reset",
    "a disk stalled",
    "a member of etcd was killed",
    "all of etcd was lost",
    "another controller took over",
    "a partition got another leader",
    "a sender did not hear what became of a record",
)


def run_seed(seed: int) -> Outcome:
    with World(f"whole {seed}", Sometimes((*OF_MACHINES, *EXPECTED))) as world:
        world.loop.sorts_steps = True
        scenario = Scenario(world)
        violations: list[Violation] = []
        try:
            world.run(scenario.play(), limit_s=LIMIT_S)
        except (Overtime, Stuck) as error:
            violations.append(Violation("stuck", f"{error}; {scenario.plight()}"))
        except Exception as error:  # noqa: BLE001  # whatever a run dies of is its result
            violations.append(Violation("crashed", repr(error)))
        violations += scenario.verdict()
        return Outcome(
            seed,
            world.trace.hexdigest(),
            world.now_s,
            world.loop.step_count,
            scenario.told.sent_count,
            scenario.nemesis.fault_count,
            dict(sorted(world.sometimes.counts.items())),
            tuple(str(violation) for violation in violations),
        )


class Scenario:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng_for("scenario")
        etcd = ModelledEtcd(world) if self._rng.random() < 0.6 else None
        count = self._rng.choice([3, 3, 3, 5])
        self._members = Members(world, count, etcd, ())
        self._clock = world.machine("observer").clock
        self._partition_count = self._rng.randrange(1, 4)
        self._places: list[Place] = [(TOPIC, index) for index in range(self._partition_count)]
        self._final: dict[Place, dict[int, bytes]] = {}
        self._violations: list[Violation] = []
        self._is_concluded = False
        self.told = Told()
        self.nemesis = Nemesis(self._members)

    async def play(self) -> None:
        if self._members.etcd is not None:
            await self._members.etcd.start()
        async with asyncio.TaskGroup() as group:
            keeping = [group.create_task(member.keep_running()) for member in self._members.all]
            await self._create_topic()
            until_s = self._world.now_s + WORK_S
            async with asyncio.TaskGroup() as working:
                for sender in self._senders():
                    working.create_task(sender.run(until_s))
                for reader in self._readers():
                    working.create_task(reader.run(until_s))
                working.create_task(self.nemesis.run(until_s))
            await self._conclude()
            for task in keeping:
                task.cancel()

    def verdict(self) -> Iterator[Violation]:
        yield from self._violations
        for member in self._members.all:
            for failure in member.failures:
                yield Violation("failed", failure)
        if self._is_concluded:
            yield from judge(self.told, self._final)
            if self.nemesis.fault_count < FAULTS_MIN:
                yield Violation("idle", f"{self.nemesis.fault_count} faults, {FAULTS_MIN} wanted")
            if not self.told.acknowledged:
                yield Violation("idle", "nothing was acknowledged")

    def plight(self) -> str:
        """For whoever has to explain why nothing went on."""
        running = [member.machine.name for member in self._members.all if member.machine.has_started]
        controller = self._members.controller()
        decides = "nobody" if controller is None else controller.machine.name
        return f"{running or 'nobody'} runs, {decides} decides, {self._partitions()}"

    async def _create_topic(self) -> None:
        while True:
            client = client_of("admin", self._world, self._clock, self._members.bootstrap)
            try:
                topic = NewTopic(TOPIC, partition_count=self._partition_count, replication_factor=3)
                outcomes = await Admin(client).create_topics([topic])
            except RopewalkError:
                await asyncio.sleep(0.2)
                continue
            finally:
                client.close()
            if all(outcome is None for outcome in outcomes.values()):
                return
            await asyncio.sleep(0.2)  # too few brokers are there yet

    def _senders(self) -> Iterator[Sender]:
        for number in range(self._rng.randrange(1, 4)):
            yield self._sender(f"numbered-{number}", numbered=True, acks=Acks.ALL)
        for number in range(self._rng.randrange(0, 3)):
            yield self._sender(f"plain-{number}", numbered=False, acks=Acks.ALL)
        if self._rng.random() < 0.3:
            yield self._sender("hasty", numbered=False, acks=Acks.LEADER)

    def _sender(self, name: str, *, numbered: bool, acks: Acks) -> Sender:
        return Sender(
            name,
            self._world,
            self._clock,
            self._members.bootstrap,
            self._places,
            self.told,
            numbered=numbered,
            acks=acks,
        )

    def _readers(self) -> Iterator[Reader]:
        for number in range(self._rng.randrange(1, 3)):
            yield self._reader(f"reader-{number}")

    def _reader(self, name: str) -> Reader:
        return Reader(
            name, self._world, self._clock, self._members.bootstrap, self._places, self.told.on_read
        )

    async def _conclude(self) -> None:
        self._note_history()
        await self.nemesis.heal()
        began_s = self._world.now_s
        while not self._is_whole():
            if self._world.now_s - began_s > HEAL_S_MAX:
                self._violations.append(Violation("not healed", self.plight()))
                return
            await asyncio.sleep(0.1)
        final = Reader(
            "final", self._world, self._clock, self._members.bootstrap, self._places, self._on_final
        )
        await final.read_all()
        self._violations += compare_copies([member.machine for member in self._members.all], self._places)
        self._is_concluded = True

    def _on_final(self, place: Place, offset: int, value: bytes) -> None:
        self._final.setdefault(place, {})[offset] = value

    def _is_whole(self) -> bool:
        """Whether every partition is led and every replica in sync, as every node has heard."""
        nodes = self._members.nodes()
        if len(nodes) < len(self._members.all) or self._members.controller() is None:
            return False
        return all(
            partition.leader is not None and set(partition.isr) == set(partition.replicas)
            for node in nodes
            for partition in node.image.topic(TOPIC).partitions
        )

    def _partitions(self) -> list[Partition]:
        for node in self._members.nodes():
            topic = node.image.topics.get(TOPIC)
            if topic is not None:
                return list(topic.partitions)
        return []

    def _note_history(self) -> None:
        if any(node.image.controller_epoch > 2 for node in self._members.nodes()):
            self._world.sometimes.note("another controller took over")
        if any(partition.leader_epoch > 0 for partition in self._partitions()):
            self._world.sometimes.note("a partition got another leader")
        if self.told.unknown_count:
            self._world.sometimes.note("a sender did not hear what became of a record")
