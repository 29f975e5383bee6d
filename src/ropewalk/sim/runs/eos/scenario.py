"""One seed of exactly once: from empty disks to a verdict.

Transactional and plain producers, consumers, members of groups, and processes that read, transform and write in
transactions, some of them with `ropewalk.aio` and the others as small as can be, work on a cluster while one fault follows the other, aimed at coordinators more often than at others. Then everything
is healed: whoever was at work finishes, transactions end or time out, the rest of the input is transformed, and everything
is read, by whoever reads all and by whoever reads what is committed; in half of the runs after the power has failed everywhere.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.sim.clients.group_members import LONE_GROUP, FinalMember, GroupMember, LoneCommitter
from ropewalk.sim.judges.checker import Violation, check
from ropewalk.sim.judges.eos.checker import check_eos
from ropewalk.sim.judges.eos.history import EosJournal
from ropewalk.sim.judges.group_checker import check_groups
from ropewalk.sim.machines.sometimes import EXPECTED as EXPECTED_OF_A_NODE
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.world import World
from ropewalk.sim.runs.cluster.administrator import Administrator
from ropewalk.sim.runs.cluster.rest import differences
from ropewalk.sim.runs.cluster.sometimes import EXPECTED as EXPECTED_OF_CLUSTERS
from ropewalk.sim.runs.cluster.stage import LIMIT_S, REST_S, Restless, Stage, run_on_stage
from ropewalk.sim.runs.eos.client_readers import ClientReader
from ropewalk.sim.runs.eos.client_transformers import ClientTransformer
from ropewalk.sim.runs.eos.client_writers import ClientWriter, bootstrap_of
from ropewalk.sim.runs.eos.closing import hanging, is_compacted, note_final_logs
from ropewalk.sim.runs.eos.committed import read_committed_offsets
from ropewalk.sim.runs.eos.guide import EosGuide, MemberGuide
from ropewalk.sim.runs.eos.late_topic import LateTopic
from ropewalk.sim.runs.eos.membership import ClassicMembership, Membership, ServerAssignedMembership
from ropewalk.sim.runs.eos.nearby_topic import NearbyTopic
from ropewalk.sim.runs.eos.overtaken_topic import OvertakenTopic
from ropewalk.sim.runs.eos.readers import FinalReader, Reader
from ropewalk.sim.runs.eos.side_topics import UNCLEAN, Guides, PoisonedTopic, TopicOfItsOwn, UncleanTopic
from ropewalk.sim.runs.eos.sometimes import EXPECTED
from ropewalk.sim.runs.eos.transactional import Flavour, Refused, TransactionalProducer
from ropewalk.sim.runs.eos.transactors import Transactor
from ropewalk.sim.runs.eos.transformers import Transformer
from ropewalk.sim.runs.eos.writers import Writer
from ropewalk.sim.runs.outcome import Outcome, shortcomings
from ropewalk.wire.error_code import ErrorCode

WORK_S: Final = 20.0
OPERATIONS_MIN: Final = 100
FAULTS_MIN: Final = 2

INPUT: Final = "input"
OUTPUT: Final = "output"
WORKERS: Final = "workers"
READERS: Final = "readers"
CLIENT_WORKERS: Final = "client-workers"

_SETTINGS: Final = (
    "offsets.topic.num.partitions=2",
    "group.min.session.timeout.ms=100",
    "group.initial.rebalance.delay.ms=100",
    "group.consumer.session.timeout.ms=3000",
    "group.consumer.heartbeat.interval.ms=500",
    "transaction.state.log.num.partitions=2",
)

_COMPACTING: Final = ("log.roll.ms=2000", "log.cleaner.min.cleanable.ratio=0.05")
"""The topics of coordinators are compacted while they are written, and read again after."""


def run_seed(seed: int, *, kernel_syncs: bool = False) -> Outcome:
    expected = dict.fromkeys((*EXPECTED, *EXPECTED_OF_CLUSTERS, *EXPECTED_OF_A_NODE))
    with World(f"eos {seed}", Sometimes(tuple(expected)), kernel_syncs=kernel_syncs) as world:
        world.loop.sorts_steps = True
        world.network.weather = replace(world.network.weather, late_probability=0.5)
        return run_on_stage(seed, world, EosScenario(world))


class EosScenario:
    def __init__(self, world: World) -> None:
        self._world = world
        settings = (*_SETTINGS, *_COMPACTING) if world.rng_for("settings").random() < 0.5 else _SETTINGS
        self.stage = Stage(
            world,
            lambda topic: topic == UNCLEAN,
            settings=settings,
            strikes_coordinators=True,
            may_have_racks=True,
        )
        self._rng = self.stage.rng
        self._workload = self.stage.workload
        self._journal = EosJournal()
        self._timeout_ms = self._rng.choice([1500, 3000, 6000])
        kinds: list[Callable[[MemberGuide, str, Sequence[TopicPartition]], Membership]]
        kinds = [ClassicMembership, ServerAssignedMembership]
        self._membership_kind = self._rng.choice(kinds)
        self._transactional_ids: dict[str, None] = {}
        self._client_rng = world.rng_for("clients of the library")
        self._side_topics: list[TopicOfItsOwn] = []
        self._is_complete = False
        self._findings: list[Violation] = []

    async def play(self) -> None:
        async with asyncio.TaskGroup() as group:
            keeping = await self.stage.form(group)
            await self._make_topics()
            await self._make_side_topics()
            self._workload.until_s = self._world.now_s + WORK_S
            async with asyncio.TaskGroup() as clients:
                self._start_clients(clients)
                await self.stage.nemesis.run()
                await self.stage.nemesis.heal()
            await self._conclude()
            for task in keeping:
                task.cancel()

    def violations(self) -> list[Violation]:
        found = [*check(self._workload.journal.events), *check_groups(self._workload.group_journal.events)]
        if self._is_complete:
            found += check_eos(self._journal.events)
        return [*found, *self._findings]

    def shortcomings(self) -> list[Violation]:
        fault_count = self.stage.nemesis.fault_count
        return shortcomings(self._workload, fault_count, operations_min=OPERATIONS_MIN, faults_min=FAULTS_MIN)

    async def _make_topics(self) -> None:
        administrator = Administrator(self._guide("administrator"), self.stage.node_count, may_move=False)
        for name in (INPUT, OUTPUT):
            code = await administrator.create(name, partitions=self._rng.randrange(1, 4), flush="group")
            assert code == ErrorCode.NONE, f"{name} cannot be made in a cluster without faults: {code.name}"

    def _start_clients(self, clients: asyncio.TaskGroup) -> None:
        rng = self._rng
        for number in range(rng.randrange(1, 3)):
            clients.create_task(Writer(self._guide(f"writer-{number}"), self._partitions(INPUT)).run())
        for number in range(rng.randrange(1, 4)):
            reader = Reader(self._guide(f"reader-{number}"), is_committed_only=number != 1)
            clients.create_task(reader.run())
        self._start_members(clients)
        self._start_transactions(clients)
        self._start_clients_of_the_library(clients)

    async def _make_side_topics(self) -> None:
        bootstrap = bootstrap_of(self.stage.members.names)
        kinds: list[tuple[float, Callable[[Guides, str, Stage], TopicOfItsOwn]]] = [
            (0.3, PoisonedTopic),
            (0.3, UncleanTopic),
            (0.3, OvertakenTopic),
            (0.5, LateTopic),
        ]
        for share, kind in kinds:
            if self._client_rng.random() < share:
                await self._make_side_topic(kind(self._guide, bootstrap, self.stage))
        if self.stage.members.racks:
            await self._make_side_topic(NearbyTopic(self._guide, bootstrap, self.stage))

    async def _make_side_topic(self, topic: TopicOfItsOwn) -> None:
        self._side_topics.append(topic)
        await topic.make()

    def _start_clients_of_the_library(self, clients: asyncio.TaskGroup) -> None:
        """With dice of their own, so that what the others do does not depend on whether they are there."""
        rng, bootstrap = self._client_rng, bootstrap_of(self.stage.members.names)
        if rng.random() < 0.6:
            writer = ClientWriter(self._guide("client-writer"), bootstrap, self._partitions(INPUT))
            clients.create_task(writer.run())
        if rng.random() < 0.5:
            is_committed_only = rng.random() < 0.7
            reader = ClientReader(
                self._guide("client-reader"), bootstrap, is_committed_only=is_committed_only
            )
            clients.create_task(reader.run())
        if rng.random() < 0.6:
            protocol = rng.choice(["classic", "consumer"])
            for number in range(rng.randrange(1, 4)):
                name = f"client-worker-{number}"
                self._transactional_ids[name] = None
                worker = ClientTransformer(
                    self._guide(name),
                    bootstrap,
                    CLIENT_WORKERS,
                    INPUT,
                    self._partitions(OUTPUT),
                    protocol=protocol,
                    transaction_timeout_ms=self._timeout_ms,
                )
                clients.create_task(worker.run())
        for topic in self._side_topics:
            topic.start(clients)

    def _start_transactions(self, clients: asyncio.TaskGroup) -> None:
        rng = self._rng
        transactor_count = rng.randrange(1, 4)
        for number in range(transactor_count):
            # The last one may be somebody's double: each of them fences the other.
            is_double = number == transactor_count - 1 and rng.random() < 0.5
            name = "transactor-0" if is_double else f"transactor-{number}"
            clients.create_task(self._transactor(f"transactor-{number}", name).run())
        for number in range(rng.randrange(1, 4)):
            clients.create_task(self._transformer(f"worker-{number}").run())

    def _start_members(self, clients: asyncio.TaskGroup) -> None:
        rng = self._rng
        partitions = tuple(self._workload.topics.partitions)
        for number in range(rng.randrange(1, 4)):
            name = f"member-{number}"
            member = GroupMember(
                self._member_guide(name, READERS),
                READERS,
                partitions,
                instance_id=None,
                knows_instances=False,
            )
            clients.create_task(member.run())
        clients.create_task(LoneCommitter(self._member_guide(LONE_GROUP, LONE_GROUP), partitions).run())

    async def _conclude(self) -> None:
        self._workload.until_s = LIMIT_S
        await self.stage.until_at_rest(within_s=REST_S)
        await self._until(
            "a transaction hangs", lambda: not hanging(self.stage.members, self.stage.judge.image)
        )
        await self._transform_the_rest()
        await self._take_over_every_id()
        if self._rng.random() < 0.5:
            self.stage.cut_power()
        await self.stage.until_at_rest(within_s=REST_S)
        await self._read_everything()
        await self.stage.until_at_rest(within_s=REST_S)
        note_final_logs(self._journal, self.stage.members, self.stage.judge.image)
        if is_compacted(self.stage.members, self.stage.judge.image):
            self._world.sometimes.note("the log of a coordinator was compacted")
        self._findings += differences(
            self.stage.members, self.stage.judge.image, set[tuple[NodeId, TopicPartition]]()
        )
        self._is_complete = True

    async def _transform_the_rest(self) -> None:
        """Somebody must be able to: nothing of what went before may stand in the way."""
        worker = self._transformer("last-worker")
        began_s = self._world.now_s
        while not await worker.step():
            if self._world.now_s - began_s > REST_S:
                raise Restless("the rest of the input cannot be transformed")
            await asyncio.sleep(0.1)

    async def _take_over_every_id(self) -> None:
        """Whoever had it: its last transaction must have come to its end, which the logs alone do not show."""
        for transactional_id in list(self._transactional_ids):
            heir = self._producer(self._guide(f"heir of {transactional_id}"), transactional_id)
            began_s = self._world.now_s
            while not heir.is_ready:
                if self._world.now_s - began_s > REST_S:
                    raise Restless(f"the last transaction of {transactional_id} does not end")
                with suppress(Refused):
                    await heir.initialise()

    async def _read_everything(self) -> None:
        guide = self._guide("final")
        final = FinalReader(guide)
        for partition in self._workload.topics.partitions:
            await final.read(partition, is_committed_only=True)
            await final.read(partition, is_committed_only=False)
        for group in (WORKERS, CLIENT_WORKERS):
            while True:
                if await read_committed_offsets(guide, group, self._partitions(INPUT), is_stable=True):
                    break
                await asyncio.sleep(0.2)
        await self._read_side_topics()
        for group in (READERS, LONE_GROUP):
            member = FinalMember(
                self._member_guide(f"final-{group}", group), self._workload.topics.partitions
            )
            await member.conclude(group)

    async def _read_side_topics(self) -> None:
        for topic in self._side_topics:
            await topic.conclude()
            self._findings += topic.findings

    async def _until(self, complaint: str, is_fulfilled: Callable[[], bool]) -> None:
        began_s = self._world.now_s
        while not is_fulfilled():
            if self._world.now_s - began_s > REST_S:
                raise Restless(f"{complaint}; {hanging(self.stage.members, self.stage.judge.image)}")
            await asyncio.sleep(0.2)

    def _transactor(self, name: str, transactional_id: str) -> Transactor:
        guide = self._guide(name)
        producer = self._producer(guide, transactional_id)
        return Transactor(
            guide, producer, self._workload.topics.partitions, timeout_ms=self._timeout_ms, pause_s=0.5
        )

    def _transformer(self, name: str) -> Transformer:
        guide = self._member_guide(name, WORKERS)
        producer = self._producer(guide, name)
        membership = self._membership_kind(guide, WORKERS, self._partitions(INPUT))
        return Transformer(guide, producer, membership, self._partitions(OUTPUT))

    def _producer(self, guide: EosGuide, transactional_id: str) -> TransactionalProducer:
        self._transactional_ids[transactional_id] = None
        flavour = self._rng.choice([Flavour.IMPLICIT, Flavour.IMPLICIT, Flavour.EXPLICIT])
        return TransactionalProducer(guide, transactional_id, flavour, timeout_ms=self._timeout_ms)

    def _partitions(self, topic: str) -> list[TopicPartition]:
        return [each for each in self._workload.topics.partitions if each.topic == topic]

    def _guide(self, name: str) -> EosGuide:
        return EosGuide(self._workload, name, self.stage.members.names, self._journal)

    def _member_guide(self, name: str, group: str) -> MemberGuide:
        names, image = self.stage.members.names, self.stage.judge.image
        return MemberGuide(self._workload, name, names, self._journal, group, image)
