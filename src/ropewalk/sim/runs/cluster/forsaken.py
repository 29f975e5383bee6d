"""A leader that is left alone, deletes records for somebody, and is lost: whoever was away at the time leads next.

Where one replica is left in sync, the one that left last stays eligible. It was not there when the records were deleted, nobody waited for
it, and nobody tells it before it leads. So what it begins with is what the metadata says (P10).
"""

import asyncio
from typing import Final

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.metadata.image import Image, Partition
from ropewalk.sim.clients.link import LinkLost
from ropewalk.sim.runs.cluster.guide import Guide
from ropewalk.sim.runs.cluster.members import HELD_S_MAX, Member, Members, put_down
from ropewalk.sim.runs.cluster.trimmer import Trimmer

BEGIN_S: Final = (1.0, 6.0)
"""Into the work: by then there are records, and there is time left for sessions to end and nodes to start again."""

ATTEMPTS_MAX: Final = 4


class Forsaken:
    def __init__(self, guide: Guide, trimmer: Trimmer, members: Members, image: Image) -> None:
        """`guide` is the one by which `trimmer` finds its way; `image` is the cluster as it is, whoever may know of it."""
        self._guide = guide
        self._workload = guide.workload
        self._trimmer = trimmer
        self._members = members
        self._image = image
        self._rng = guide.rng

    async def run(self) -> None:
        await asyncio.sleep(self._rng.uniform(*BEGIN_S))
        partition = self._rng.choice(self._trimmer.partitions())
        facts = self._facts(partition)
        if facts.leader is None or any(map(self._members.holds_home, facts.replicas)):
            return  # where the metadata is lost with one of them nobody is elected meanwhile
        leader = self._members.by_id[facts.leader]
        followers = [self._members.by_id[each] for each in facts.replicas if each != facts.leader]
        try:
            await self._play(partition, leader, followers)
        finally:
            for member in (leader, *followers):
                member.is_held_down = False
            self._guide.close()

    async def _play(self, partition: TopicPartition, leader: Member, followers: list[Member]) -> None:
        for member in followers:
            put_down(member)
            await asyncio.sleep(self._rng.uniform(0.0, 0.5))  # or both are fenced at once
        if not await self._workload.until(
            lambda: self._is_alone(partition, leader.node_id), within_s=HELD_S_MAX
        ):
            return
        if not await self._delete(partition):
            return
        put_down(leader)
        for member in followers:
            member.is_held_down = False
        if await self._workload.until(
            lambda: self._facts(partition).leader not in (None, leader.node_id), within_s=HELD_S_MAX
        ):
            self._workload.sometimes.note("a replica led that was away when records were deleted")
            await asyncio.sleep(1.0)  # for others to look at what it begins with

    async def _delete(self, partition: TopicPartition) -> bool:
        for _ in range(ATTEMPTS_MAX):
            end_offset = self._workload.end_seen.get(partition, 0)
            try:
                if end_offset and await self._trimmer.trim(
                    partition, self._rng.randrange(end_offset // 2, end_offset) + 1
                ):
                    return True
            except LinkLost:
                self._guide.doubt()
            await asyncio.sleep(0.2)
        return False

    def _is_alone(self, partition: TopicPartition, node_id: NodeId) -> bool:
        facts = self._facts(partition)
        return facts.isr == (node_id,) and bool(facts.eligible)

    def _facts(self, partition: TopicPartition) -> Partition:
        return self._image.topics[partition.topic].partitions[partition.partition]
