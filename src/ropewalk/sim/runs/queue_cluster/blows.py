"""What befalls leaders of queues and front ends, beside what befalls any cluster: they are struck where messages are on their way."""

import asyncio
from typing import Final

from ropewalk.metadata.image import Image
from ropewalk.sim.clients.workload import Workload
from ropewalk.sim.runs.cluster.members import Member, Members

_AWAY_S: Final = (0.5, 3.0, 8.0)


class Blows:
    def __init__(self, workload: Workload, members: Members, image: Image) -> None:
        """`image` is the cluster as it is, whoever may know of it."""
        self._workload = workload
        self._world = workload.world
        self._members = members
        self._image = image
        self._rng = self._world.rng_for("blows")
        self._pause_s = self._rng.choice([1.5, 3.0, 6.0])
        self.count = 0

    async def forsake_front_ends(self) -> None:
        """Nothing gets from a front end to a leader any more, while what the leader gives still gets to clients; then the front end is gone. So the
        leader never hears that it was taken."""
        while not self._workload.is_over:
            await asyncio.sleep(self._rng.uniform(0.5, 2.0))
            leader, front_end = self._draw_leader(), self._draw_front_end()
            if leader is front_end:
                continue
            self.count += 1
            self._world.sometimes.note("a front end was lost with what it had passed on")
            self._world.network.cut(front_end.machine.name, leader.machine.name)
            await asyncio.sleep(self._rng.uniform(0.5, 3.0))
            front_end.machine.kill()
            self._world.network.mend(front_end.machine.name, leader.machine.name)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._rng.uniform(0.3, 1.0) * self._pause_s)
            if self._workload.is_over:
                return
            self.count += 1
            leader, front_end = self._draw_leader(), self._draw_front_end()
            blow = self._rng.choice(["leader", "leader", "front end", "between", "between"])
            self._world.trace.note("blow", blow)
            if blow == "between":
                self._part(leader, front_end)
            else:
                self._strike(leader if blow == "leader" else front_end, blow)

    def _strike(self, member: Member, what: str) -> None:
        self._world.sometimes.note(f"a {what} of queues was struck")
        machine, how = member.machine, self._rng.choice(["kill", "kill", "cut power", "pause", "pause"])
        if how == "kill":
            machine.kill()
        elif how == "cut power":
            machine.cut_power()
        elif machine.process is not None and not machine.process.is_paused:
            machine.pause()
            self._world.loop.call_later(self._rng.choice([0.5, 2.0, 6.0]), machine.resume)

    def _part(self, leader: Member, front_end: Member) -> None:
        """One way or both; what was on its way arrives later, or not."""
        ways = [(leader.machine.name, front_end.machine.name), (front_end.machine.name, leader.machine.name)]
        ways = self._rng.choice([ways, ways[:1], ways[1:]])
        if leader is front_end:
            return
        self._world.sometimes.note("a front end was cut off from a leader")
        for source, target in ways:
            self._world.network.cut(source, target)

        def mend() -> None:
            for source, target in ways:
                self._world.network.mend(source, target)

        self._world.loop.call_later(self._rng.choice(_AWAY_S) * self._rng.uniform(0.4, 1.0), mend)

    def _draw_leader(self) -> Member:
        leaders = [
            partition.leader
            for queue in self._image.queues
            for partition in self._image.topics_by_id[queue.topic_id].partitions
            if partition.leader is not None
        ]
        return self._members.by_id[self._rng.choice(leaders)] if leaders else self._draw_front_end()

    def _draw_front_end(self) -> Member:
        names = self._members.front_end_names or self._members.names
        name = self._rng.choice(names)
        return next(member for member in self._members.by_id.values() if member.machine.name == name)
