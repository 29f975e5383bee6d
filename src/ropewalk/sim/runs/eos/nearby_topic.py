"""`ropewalk.aio` in the simulator, with a rack: a consumer that the leader sends to a copy nearby.

What must hold
    starves  it reads from that copy, even where it cannot reach the leader, and from the leader when the copy is gone
    spins    it does not ask one of them again and again for what the other has

It is tried in a cluster that has been healed, so that nothing but what is done here can be in the way.
"""

import asyncio
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.calls.produce import Acks
from ropewalk.client.consuming.consumer import Consumer
from ropewalk.metadata.image import Partition
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.runs.cluster.members import RACK_COUNT
from ropewalk.sim.runs.cluster.stage import REST_S, Stage
from ropewalk.sim.runs.eos.restraint import Restraint
from ropewalk.sim.runs.eos.side_topics import Guides, SideTopic

NEARBY: Final = "nearby"
_WITHIN_S: Final = 20.0
"""What is acknowledged must have been read by then; a consumer's own patience with what does not answer is a tenth of it."""


class NearbyTopic:
    def __init__(self, guides: Guides, bootstrap: str, stage: Stage) -> None:
        # With one copy as the minimum it would not survive a disk that is replaced while the others are away.
        settings = {"min.insync.replicas": "2"}
        self._topic = SideTopic(guides, bootstrap, NEARBY, settings, Acks.ALL)
        self._guide = guides(f"{NEARBY}-reader")
        self._writer = guides(f"{NEARBY}-last-writer")
        self._stage = stage
        self._restraint = Restraint(stage.world, self._guide.name)
        self._seen: set[tuple[TopicPartition, int]] = set()
        self._findings: list[Violation] = []

    @property
    def findings(self) -> list[Violation]:
        return [*self._findings, *self._restraint.violations]

    async def make(self) -> None:
        await self._topic.make()

    def start(self, clients: asyncio.TaskGroup) -> None:
        clients.create_task(self._topic.write())

    async def conclude(self) -> None:
        partition = self._guide.rng.choice(self._topic.partitions)
        facts = self._facts(partition)
        leader = facts.leader
        assert leader is not None, "a cluster at rest"
        copy = self._copy_alone_in_its_rack(facts, leader)
        if copy is None:
            return
        rack = self._rack_of(copy)
        async with self._topic.consumer(self._guide, client_rack=rack) as consumer:
            consumer.assign([partition])
            await self._read_what_is_written(consumer, partition, "while all is well")
            await self._without_the_leader(consumer, partition, leader)
            await self._without_the_copy(consumer, partition, copy)

    async def _without_the_leader(
        self, consumer: Consumer, partition: TopicPartition, leader: NodeId
    ) -> None:
        """Only this reader cannot reach it."""
        network, name = self._stage.world.network, self._stage.members.by_id[leader].machine.name
        network.partition(self._guide.name, name)
        if await self._read_what_is_written(consumer, partition, f"without a way to {name}, which leads"):
            self._note("a consumer of the library read from a copy nearby")
        network.mend(self._guide.name, name)
        network.mend(name, self._guide.name)

    async def _without_the_copy(self, consumer: Consumer, partition: TopicPartition, copy: NodeId) -> None:
        member = self._stage.members.by_id[copy]
        member.is_held_down = True
        member.machine.kill()
        if await self._read_what_is_written(consumer, partition, f"after node {copy}, the nearest, was gone"):
            self._note("a consumer of the library came back from a copy that was gone")
        member.is_held_down = False

    async def _read_what_is_written(self, consumer: Consumer, partition: TopicPartition, when: str) -> bool:
        offset = await self._topic.write_one(self._writer, partition, within_s=REST_S)
        until_s = self._stage.world.now_s + _WITHIN_S
        while (partition, offset) not in self._seen:
            if self._stage.world.now_s > until_s:
                text = f"{partition} has a record at {offset}, which was not read within {_WITHIN_S:.0f} s {when}"
                self._findings.append(Violation("starves", text))
                return False
            await self._poll(consumer)
        return True

    async def _poll(self, consumer: Consumer) -> None:
        try:
            messages = await consumer.poll(timeout_ms=300)
        except RopewalkError:
            await asyncio.sleep(0.1)
            return
        if messages:
            self._restraint.on_progress()
        self._seen.update((each.topic_partition, each.offset) for each in messages)

    def _copy_alone_in_its_rack(self, facts: Partition, leader: NodeId) -> NodeId | None:
        """One that the leader sends readers to, and that may be taken away."""
        racks = [self._rack_of(each) for each in facts.replicas]
        copies = [
            each
            for each in facts.isr
            if each != leader
            and racks.count(self._rack_of(each)) == 1
            and not self._stage.members.holds_home(each)
        ]
        return self._guide.rng.choice(copies) if copies else None

    def _rack_of(self, node_id: NodeId) -> str:
        return self._stage.members.racks[node_id % RACK_COUNT]

    def _facts(self, partition: TopicPartition) -> Partition:
        return self._stage.judge.image.partition(partition.topic, partition.partition)

    def _note(self, what: str) -> None:
        self._stage.world.sometimes.note(what)
