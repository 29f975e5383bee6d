"""One seed, from an empty disk to a verdict.

A node is started and topics are created; producers and consumers work while one fault follows the other;
then everything is healed, the power is cut once more so that nothing is believed that is not on the
platter, and all partitions are read to their ends. The history of it all goes to the checker.
"""

import asyncio
from typing import Final

from ropewalk.base.ids import TopicId
from ropewalk.sim.clients.consumers import Consumer, FinalReader
from ropewalk.sim.clients.group_members import LONE_GROUP, FinalMember, GroupMember, LoneCommitter
from ropewalk.sim.clients.link import LinkLost
from ropewalk.sim.clients.producers import IdempotentProducer, PlainProducer
from ropewalk.sim.clients.remaker import Remaker
from ropewalk.sim.clients.topic_kinds import Kind, draw_settings
from ropewalk.sim.clients.workload import Caller, Workload
from ropewalk.sim.judges.checker import Violation, check
from ropewalk.sim.judges.group_checker import check_groups
from ropewalk.sim.judges.history import Created, PowerFailed
from ropewalk.sim.machines.loop import Overtime, Stuck
from ropewalk.sim.machines.process import Died
from ropewalk.sim.machines.world import Machine, World
from ropewalk.sim.runs.node.faults import Nemesis
from ropewalk.sim.runs.node.keeper import Boot, Keeper
from ropewalk.sim.runs.outcome import Outcome, describe, outcome_of, shortcomings
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics

WORK_S: Final = 20.0
LIMIT_S: Final = 300.0
"""Far more than healing and the final reads may take."""

OPERATIONS_MIN: Final = 200
FAULTS_MIN: Final = 3

NODE_NAME: Final = "node"
NODE_PORT: Final = 9092


def run_seed(seed: int, boot: Boot, *, kernel_syncs: bool = False) -> Outcome:
    with World(seed, kernel_syncs=kernel_syncs) as world:
        scenario = Scenario(world, boot)
        violations: list[Violation] = []
        try:
            world.run(scenario.play(), limit_s=LIMIT_S)
        except (Overtime, Stuck) as error:
            violations.append(Violation("stuck", f"{error}; {scenario.plight()}"))
        except Exception as error:  # noqa: BLE001  # whatever a run dies of is its result
            violations.append(Violation("crashed", describe(error)))
        violations += check(scenario.workload.journal.events, world.sometimes.note)
        violations += check_groups(scenario.workload.group_journal.events, world.sometimes.note)
        violations += scenario.shortcomings() if not violations else []
        return outcome_of(
            seed,
            world,
            scenario.workload,
            fault_count=scenario.nemesis.fault_count,
            sometimes=world.sometimes.counts,
            violations=violations,
        )


class Scenario:
    def __init__(self, world: World, boot: Boot) -> None:
        self._world = world
        self._rng = world.rng_for("scenario")
        self._machine: Machine = world.machine(NODE_NAME, can_sync_everything=self._rng.random() < 0.5)
        self.workload = Workload(world, (NODE_NAME, NODE_PORT), until_s=WORK_S)
        self._machine.platters.on_power_lost = lambda: self.workload.journal.note(PowerFailed())
        self._keeper = Keeper(world, self._machine, boot, self.workload.journal)
        self._plain_count = self._rng.randrange(1, 4)
        self._idempotent_count = self._rng.randrange(1, 4)
        self._consumer_count = self._rng.randrange(1, 4)
        self._member_counts = {
            f"group-{number}": self._rng.randrange(1, 4) for number in range(self._rng.randrange(1, 3))
        }
        clients = (
            [f"plain-{number}" for number in range(self._plain_count)]
            + [f"idempotent-{number}" for number in range(self._idempotent_count)]
            + [f"consumer-{number}" for number in range(self._consumer_count)]
            + [f"{group}-{number}" for group, count in self._member_counts.items() for number in range(count)]
        )
        self.nemesis = Nemesis(self.workload, self._machine, self._keeper, clients)

    async def play(self) -> None:
        started = await self._keeper.start()
        if not started:
            raise Died("the node does not start on an empty disk")
        for kind in (Kind.PLAIN, Kind.COMPACTED):
            await self._create_topic(kind, is_under_fire=False)
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._keeper.keep_running())
            async with asyncio.TaskGroup() as clients:
                self._start_clients(clients)
                clients.create_task(self.nemesis.run())
                clients.create_task(self._create_late())
            await self._conclude()
            keeping.cancel()

    def plight(self) -> str:
        """For whoever has to explain why nothing went on."""
        state = "running" if self._machine.is_running else f"gone ({self._machine.death_cause})"
        return f"the node is {state}"

    def shortcomings(self) -> list[Violation]:
        return shortcomings(
            self.workload, self.nemesis.fault_count, operations_min=OPERATIONS_MIN, faults_min=FAULTS_MIN
        )

    def _start_clients(self, clients: asyncio.TaskGroup) -> None:
        may_delete = self._rng.random() < 0.3
        for number in range(self._plain_count):
            caller = Caller(self.workload, f"plain-{number}")
            clients.create_task(PlainProducer(caller, acks=self._rng.choice([-1, -1, 1, 0])).run())
        for number in range(self._idempotent_count):
            caller = Caller(self.workload, f"idempotent-{number}")
            partition = self.workload.draw_partition(self._rng)
            clients.create_task(IdempotentProducer(caller, partition).run())
        for number in range(self._consumer_count):
            caller = Caller(self.workload, f"consumer-{number}")
            clients.create_task(Consumer(caller, may_delete=may_delete and number == 0).run())
        partitions = tuple(self.workload.topics.partitions)
        for group, count in self._member_counts.items():
            static_count = self._rng.choice([0, 1, count])
            for number in range(count):
                name = f"{group}-{number}"
                member = GroupMember(
                    Caller(self.workload, name),
                    group,
                    partitions,
                    instance_id=name if number < static_count else None,
                    knows_instances=static_count > 0,
                )
                clients.create_task(member.run())
        clients.create_task(Remaker(Caller(self.workload, "remaker")).run())
        clients.create_task(LoneCommitter(Caller(self.workload, LONE_GROUP), partitions).run())

    async def _create_late(self) -> None:
        await asyncio.sleep(self._rng.uniform(1.0, 0.8 * WORK_S))
        kind = self._rng.choice([Kind.PLAIN, Kind.COMPACTED, Kind.EXPIRING, Kind.UNFLUSHED])
        await self._create_topic(kind, is_under_fire=True)

    async def _create_topic(self, kind: Kind, *, is_under_fire: bool) -> None:
        """Until it is acknowledged, or the run is over."""
        name = f"late-{kind.value}" if is_under_fire else kind.value
        partition_count = self._rng.randrange(1, 3 if kind is Kind.COMPACTED else 4)
        settings, promise = draw_settings(self._rng, kind)
        topic = create_topics.CreatableTopic(
            name=name,
            num_partitions=partition_count,
            replication_factor=1,
            configs=tuple(
                create_topics.CreatableTopicConfig(name, value) for name, value in settings.items()
            ),
        )
        self.workload.journal.note(Created(name, promise))
        caller = Caller(self.workload, f"admin-{name}")
        while (link := await caller.connect()) is not None:
            self.workload.operation_count += 1
            try:
                response = await link.send(
                    create_topics.API,
                    link.newest_version(create_topics.API),
                    create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=3000),
                )
            except LinkLost:
                continue
            finally:
                link.close()
            (result,) = response.topics
            if result.error_code == ErrorCode.NONE:
                self.workload.topics.add(name, TopicId(bytes(result.topic_id)), partition_count, promise)
                if is_under_fire:
                    self._world.sometimes.note("a topic was created under fire")
                return
            if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                return  # an earlier attempt took effect; its id was never heard, so nobody uses it
            await caller.pause(0.5)

    async def _conclude(self) -> None:
        """Heal, cut the power once more, and read everything."""
        self.nemesis.heal()
        await asyncio.sleep(1)
        self._machine.cut_power()
        self.workload.until_s = LIMIT_S
        reader = FinalReader(Caller(self.workload, "final"))
        for partition in self.workload.topics.partitions:
            await reader.read(partition)
        member = FinalMember(Caller(self.workload, "final-member"), self.workload.topics.partitions)
        for group in (*self._member_counts, LONE_GROUP):
            await member.conclude(group)
