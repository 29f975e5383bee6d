"""A copy that is found damaged while nobody is there to mend it, and whose node is stopped in order and started again.

What is known of it must not be forgotten: when the others are back, the copy is made whole before anybody counts on it (`rot.py`).
"""

import asyncio
from collections.abc import Callable
from typing import Final

from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Image
from ropewalk.sim.clients.workload import Workload
from ropewalk.sim.runs.cluster.members import HELD_S_MAX, Member, Members, put_down
from ropewalk.sim.runs.cluster.rot import Rot

BEGIN_S: Final = (1.0, 6.0)
"""Into the work: by then there are records below the recovery point, and there is time left for nodes to start again."""


class Spoilt:
    def __init__(
        self,
        workload: Workload,
        members: Members,
        image: Image,
        rot: Rot,
        is_spare: Callable[[NodeId], bool],
        topic: str,
    ) -> None:
        """`image` is the cluster as it is, whoever may know of it; `is_spare` whether one copy more may be lost."""
        self._workload = workload
        self._members = members
        self._image = image
        self._rot = rot
        self._is_spare = is_spare
        self._topic = topic
        self._rng = workload.world.rng_for("spoilt")

    async def run(self) -> None:
        await asyncio.sleep(self._rng.uniform(*BEGIN_S))
        index = self._rng.randrange(len(self._image.topics[self._topic].partitions))
        replicas = self._image.topics[self._topic].partitions[index].replicas
        if any(map(self._members.holds_home, replicas)):
            return  # nobody could start without it
        victim, *others = (self._members.by_id[each] for each in self._rng.sample(replicas, len(replicas)))
        try:
            await self._play(victim, others)
        finally:
            for member in (victim, *others):
                member.is_held_down = False

    async def _play(self, victim: Member, others: list[Member]) -> None:
        if not await self._workload.until(lambda: self._is_spare(victim.node_id)):
            return
        put_down(victim)
        partition = self._rot.strike(victim, self._rng, [self._topic])
        if partition is None:
            return
        victim.machine.cut_power()  # whatever its cache shows of it is gone
        for member in others:
            put_down(member)
        victim.is_held_down = False
        if not await self._workload.until(lambda: victim.serving is not None, within_s=HELD_S_MAX):
            return
        await victim.scrub()
        if partition not in victim.damaged():
            return
        await victim.stop()
        await asyncio.sleep(self._rng.uniform(0.1, 3.0))
        for member in others:
            member.is_held_down = False
