"""One seed of queues on a cluster: from empty disks to a verdict.

Queues of several kinds are made, and clients send, receive and settle at whichever door, for a moment in peace and then while one fault follows the
other. Then everything is healed, in half of the runs the power is cut everywhere, all queues are emptied, and whoever waits must get what is sent.
"""

import asyncio
from typing import Final

from msgspec.structs import replace

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.sim.judges.checker import Violation, check
from ropewalk.sim.machines.sometimes import EXPECTED as EXPECTED_OF_A_NODE
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.world import World
from ropewalk.sim.runs.cluster.administrator import Administrator
from ropewalk.sim.runs.cluster.guide import Guide
from ropewalk.sim.runs.cluster.rest import differences
from ropewalk.sim.runs.cluster.sometimes import EXPECTED as EXPECTED_OF_CLUSTERS
from ropewalk.sim.runs.cluster.stage import LIMIT_S, REST_S, Restless, Stage, run_on_stage
from ropewalk.sim.runs.outcome import Outcome, shortcomings
from ropewalk.sim.runs.queue_cluster.blows import Blows
from ropewalk.sim.runs.queue_cluster.closing import check_figures, check_promptness, empty
from ropewalk.sim.runs.queue_cluster.ledger import Ledger
from ropewalk.sim.runs.queue_cluster.lives import Lives
from ropewalk.sim.runs.queue_cluster.producers import TopicProducer
from ropewalk.sim.runs.queue_cluster.receivers import Receiver, Till
from ropewalk.sim.runs.queue_cluster.senders import GROUPS, MANY_GROUPS, Purger, Sender
from ropewalk.sim.runs.queue_cluster.sometimes import EXPECTED, RARE
from ropewalk.sim.runs.queue_cluster.sorts import HIDDEN_LONG_S, HIDDEN_S_MAX, QueueSort, draw_sorts
from ropewalk.sim.runs.queue_cluster.visitor import Refused, Visitor
from ropewalk.sqs.receipts import Receipts
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_partitions

CALM_S: Final = 4.0
WORK_S: Final = 16.0
MAKE_S: Final = 30.0
OPERATIONS_MIN: Final = 100
FAULTS_MIN: Final = 2
PURGED_SHARE: Final = 0.2
FORSAKEN_SHARE: Final = 0.25
"""Of the runs: in these only front ends are lost, and FIFO queues hide messages for so long that their leaders have time to give up a front end."""


def run_seed(seed: int, *, kernel_syncs: bool = False) -> Outcome:
    expected = dict.fromkeys((*EXPECTED, *RARE, *EXPECTED_OF_CLUSTERS, *EXPECTED_OF_A_NODE))
    with World(f"queue cluster {seed}", Sometimes(tuple(expected)), kernel_syncs=kernel_syncs) as world:
        world.loop.sorts_steps = True
        world.network.weather = replace(world.network.weather, late_probability=0.5)
        return run_on_stage(seed, world, QueueClusterScenario(world))


class QueueClusterScenario:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = rng = world.rng_for("queues")
        fifo_partition_count = rng.randrange(1, 4)
        self.stage = Stage(
            world,
            lambda _: False,
            settings=(f"sqs.fifo.partitions={fifo_partition_count}",),
            serves_queues=True,
        )
        self._workload = self.stage.workload
        self._lives = Lives(world, self.stage.members)
        self._calm_until_s, self._healed_s = LIMIT_S, LIMIT_S
        self._ledgers = {
            sort.name: Ledger(sort, self._lives, world.sometimes.note, is_calm=self._is_calm)
            for sort in draw_sorts(rng, fifo_partition_count)
        }
        for ledger in self._ledgers.values():
            if ledger.sort.dead_letters:
                ledger.dead = self._ledgers[ledger.sort.dead_letters]
                ledger.dead.sources.append(ledger)
        members = self.stage.members
        self._hides_long = rng.random() < FORSAKEN_SHARE
        knows_front_ends_only = bool(members.front_end_names) and (self._hides_long or rng.random() < 0.5)
        self._doors = members.front_end_names if knows_front_ends_only else members.names
        self._blows = Blows(self._workload, members, self.stage.judge.image)
        self._findings: list[Violation] = []
        self._is_complete = False

    async def play(self) -> None:
        async with asyncio.TaskGroup() as group:
            keeping = await self.stage.form(group)
            keeping.append(group.create_task(self._lives.run()))
            for ledger in self._ledgers.values():
                await self._make(ledger.sort)
            await self.stage.until_at_rest(within_s=REST_S)
            self._calm_until_s = self._world.now_s + CALM_S
            self._workload.until_s = self._calm_until_s + WORK_S
            async with asyncio.TaskGroup() as clients:
                self._start_clients(clients)
                await asyncio.sleep(CALM_S)
                if self._hides_long:
                    await self._blows.forsake_front_ends()
                else:
                    clients.create_task(self._blows.run())
                    await self.stage.nemesis.run()
                await self.stage.nemesis.heal()
            await self._conclude()
            for task in keeping:
                task.cancel()

    def violations(self) -> list[Violation]:
        found = check(self._workload.journal.events)
        for ledger in self._ledgers.values():
            found += ledger.violations
        return [*found, *self._findings]

    def shortcomings(self) -> list[Violation]:
        fault_count = self.stage.nemesis.fault_count + self._blows.count
        return shortcomings(self._workload, fault_count, operations_min=OPERATIONS_MIN, faults_min=FAULTS_MIN)

    def _is_calm(self, at_s: float) -> bool:
        return at_s < self._calm_until_s or at_s > self._healed_s

    # Queues are made

    async def _make(self, sort: QueueSort) -> None:
        visitor, until_s = self._visitor("maker"), self._world.now_s + MAKE_S
        guide = Guide(self._workload, f"maker of {sort.name}", self.stage.members.broker_names)
        action, target = "CreateQueue", "AmazonSQS"
        body: dict[str, object] = {"QueueName": sort.name, "Attributes": sort.attributes()}
        if sort.topic:
            administrator = Administrator(guide, self.stage.node_count, may_move=False)
            code = await administrator.create(sort.topic, partitions=sort.partition_count, flush="group")
            assert code == ErrorCode.NONE, f"{sort.topic} cannot be made: {code.name}"
            self._world.sometimes.note("a topic was adopted")
            action, target = "AdoptTopic", "Ropewalk"
            body["Topic"] = sort.topic
        while True:
            try:
                if await visitor.ask(action, body, target=target) is not None:
                    break
            except Refused as refusal:  # not every door has heard of what was made a moment ago
                if self._world.now_s > until_s:
                    raise Restless(f"{sort.name} cannot be made: {refusal}") from refusal
            await asyncio.sleep(0.3)
        if sort.partition_count > 1:
            self._world.sometimes.note("a queue had several partitions")
            if not sort.topic and not sort.is_fifo:
                await self._grow(guide, sort)
        visitor.close()
        guide.close()

    async def _grow(self, guide: Guide, sort: QueueSort) -> None:
        wanted = create_partitions.CreatePartitionsTopic(
            name=sort.name, count=sort.partition_count, assignments=None
        )
        link = await guide.connect_to(None)
        response = await link.send(
            create_partitions.API,
            link.newest_version(create_partitions.API),
            create_partitions.CreatePartitionsRequest(
                topics=(wanted,), timeout_ms=5_000, validate_only=False
            ),
        )
        code = ErrorCode(response.results[0].error_code)
        assert code == ErrorCode.NONE, f"{sort.name} cannot grow in a cluster without faults: {code.name}"

    # Clients

    def _start_clients(self, clients: asyncio.TaskGroup) -> None:
        rng = self._rng
        for ledger in self._ledgers.values():
            sort = ledger.sort
            if not sort.is_sent_to:
                continue
            for number in range(rng.randrange(1, 3)):
                visitor = self._visitor(f"{sort.name}-sender{number}")
                group_count = MANY_GROUPS if self._hides_long else GROUPS
                clients.create_task(Sender(visitor, ledger, group_count=group_count).run())
            for number in range(rng.randrange(2, 4)):
                visitor = self._visitor(f"{sort.name}-receiver{number}")
                till = self._till(visitor, ledger)
                receiver = Receiver(
                    visitor, till, is_fifo=sort.is_fifo, hides_long=sort.is_fifo and self._hides_long
                )
                clients.create_task(receiver.run())
            if sort.topic:
                guide = Guide(self._workload, f"{sort.name}-producer", self.stage.members.broker_names)
                clients.create_task(TopicProducer(guide, ledger).run())
            if rng.random() < PURGED_SHARE:
                clients.create_task(Purger(self._visitor(f"{sort.name}-purger"), ledger).run())

    def _visitor(self, name: str) -> Visitor:
        return Visitor(self._workload, name, self._doors)

    def _till(self, visitor: Visitor, ledger: Ledger) -> Till:
        queue = self.stage.judge.image.queues.get(ledger.sort.name)
        assert queue is not None, "it was made before anybody uses it"
        cluster_id = self.stage.members.serving[0].cluster_id
        return Till(visitor, ledger, Receipts(cluster_id), queue.queue_id)

    # The end

    async def _conclude(self) -> None:
        self._workload.until_s = LIMIT_S
        await self.stage.until_at_rest(within_s=REST_S)
        if not self._hides_long and self._rng.random() < 0.5:
            self.stage.cut_power()
            await self.stage.until_at_rest(within_s=REST_S)
        self._healed_s = self._world.now_s
        # Dead letters arrive while the others are emptied.
        for is_last in (False, True):
            async with asyncio.TaskGroup() as emptying:
                for ledger in self._ledgers.values():
                    if bool(ledger.sources) is is_last:
                        emptying.create_task(self._empty(ledger))
        for ledger in self._ledgers.values():
            ledger.conclude()
            await self._check_rest(ledger)
        await self.stage.until_at_rest(within_s=REST_S)
        no_rot = set[tuple[NodeId, TopicPartition]]()
        self._findings += differences(self.stage.members, self.stage.judge.image, no_rot)
        self._note_leaders()
        self._is_complete = True

    async def _empty(self, ledger: Ledger) -> None:
        visitor = self._visitor(f"{ledger.sort.name}-last")
        hidden_s_max = HIDDEN_LONG_S if self._hides_long and ledger.sort.is_fifo else HIDDEN_S_MAX
        await empty(visitor, self._till(visitor, ledger), ledger.sort.name, hidden_s_max=hidden_s_max)
        visitor.close()

    async def _check_rest(self, ledger: Ledger) -> None:
        sort, name = ledger.sort, ledger.sort.name
        visitors = [self._visitor(f"{name}-{who}") for who in ("waiting", "leaving", "sending")]
        waiting, leaving, sending = visitors
        self._findings += await check_figures(waiting, sort)
        if sort.is_sent_to:
            self._findings += await check_promptness(
                (waiting, self._till(waiting, ledger)),
                (leaving, self._till(leaving, ledger)),
                Sender(sending, ledger),
                sort,
            )
        for visitor in visitors:
            visitor.close()

    def _note_leaders(self) -> None:
        for ledger in self._ledgers.values():
            for index in range(ledger.sort.partition_count):
                if self._lives.count((ledger.sort.topic_name, index)) > 1:
                    self._world.sometimes.note("a queue had another leader")
