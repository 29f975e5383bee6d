"""Which leaders a queue's partitions had, and when: on a standard queue one leader does not know what another has just given out.

Whoever leads has a core; a leader that reads its log again has another one. Several may be alive at a time, since one that is deposed
goes on until it hears of it.
"""

import asyncio
from typing import Final

from msgspec import Struct

from ropewalk.queues import QueuePartition
from ropewalk.sim.machines.world import World
from ropewalk.sim.runs.cluster.members import Members

Place = tuple[str, int]
"""A topic's name and a partition of it."""

_LOOK_S: Final = 0.02


class Life(Struct):
    node: str
    core: QueuePartition
    began_s: float
    seen_s: float


class Lives:
    def __init__(self, world: World, members: Members) -> None:
        self._world = world
        self._members = members
        self._lives: dict[Place, list[Life]] = {}
        self._starts: list[tuple[float, float]] = []
        """Times in which a node was starting: what it may have led then is not seen."""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self.look()
            await asyncio.sleep(_LOOK_S)

    def look(self) -> None:
        now_s = self._world.now_s
        for member in self._members.by_id.values():
            node = member.serving
            if node is None:
                if member.machine.is_running:
                    self._note_start(now_s)
                continue
            for hosted in node.queues:
                if hosted.core is not None:
                    place = (hosted.partition.name.topic, hosted.index)
                    self._note(place, member.machine.name, hosted.core, now_s)

    def count(self, place: Place) -> int:
        return len(self._lives.get(place, ()))

    def sole(self, place: Place, asked_s: float, answered_s: float) -> Life | None:
        """Whoever alone can have given the answer; None where there are several, or none was seen."""
        self.look()  # a leader may have given something out since the last look, as its first deed
        if any(end_s >= asked_s and start_s <= answered_s for start_s, end_s in self._starts):
            return None
        alive = [
            life
            for life in self._lives.get(place, ())
            if life.began_s <= answered_s and life.seen_s >= asked_s
        ]
        return alive[0] if len(alive) == 1 else None

    def _note(self, place: Place, node: str, core: QueuePartition, now_s: float) -> None:
        lives = self._lives.setdefault(place, [])
        for life in lives:
            if life.core is core:
                life.seen_s = now_s + _LOOK_S
                return
        lives.append(Life(node, core, now_s - 2 * _LOOK_S, now_s + _LOOK_S))

    def _note_start(self, now_s: float) -> None:
        start_s, end_s = now_s - 2 * _LOOK_S, now_s + 2 * _LOOK_S
        if self._starts and self._starts[-1][1] >= start_s:
            start_s, _ = self._starts.pop()
        self._starts.append((start_s, end_s))
