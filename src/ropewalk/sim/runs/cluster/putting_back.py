"""The last act of some runs: the metadata is put back to what it was before, while nodes run on, hang, or are started again.

What was promised has been judged by then, since an operator who does this gives up what was decided in between. What must hold is that
nobody goes on in two histories: a node that is in service knows what the home holds, and nothing else.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ropewalk.metadata.image import Image
from ropewalk.node.life import Node
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.machines.world import World
from ropewalk.sim.runs.cluster.members import Member, Members

LOOK_S: Final = 12.0
"""For whoever hangs to come back, and for everybody to have heard that the metadata is another; sessions end within that time."""


class PuttingBack:
    def __init__(self, world: World, members: Members, rng: random.Random) -> None:
        self._world = world
        self._members = members
        self._rng = rng
        self._put_back: Callable[[], Awaitable[None]] | None = None
        self._copied_offset = 0

    def copy(self) -> None:
        """As a backup is taken: of the home as it is at this moment."""
        image = self._members.newest_image()
        if image is None:
            return
        self._copied_offset = image.end_offset
        etcd = self._members.etcd
        if etcd is not None:
            backup = etcd.state.copy()
            self._put_back = lambda: etcd.put_back(backup)
            return
        platters = self._home().machine.platters
        copies = {path: bytes(file.data) for path, file in platters.files() if "/metadata/" in path}

        async def put_back() -> None:
            for path, file in platters.files():
                if path in copies:
                    file.data[:] = copies[path]

        self._put_back = put_back

    async def play(self) -> list[Violation]:
        image = self._members.newest_image()
        if self._put_back is None or image is None or image.end_offset == self._copied_offset:
            return []
        self._world.sometimes.note("the metadata was put back")
        everybody = list(self._members.by_id.values())
        hanging = [member for member in everybody if member is not self._home() and self._rng.random() < 0.4]
        restarted = [member for member in everybody if member not in hanging and self._rng.random() < 0.5]
        if self._members.etcd is None and self._home() not in restarted:
            restarted.append(self._home())  # the files are put back under nobody
        for member in hanging:
            member.machine.pause()
        for member in restarted:
            member.is_held_down = True
            member.machine.kill()
        await self._put_back()
        for member in restarted:
            member.is_held_down = False
        for _ in range(self._rng.randrange(0, 8) if restarted else 0):
            # Each start is a registration, so the new history may come to be as long as the other was.
            await asyncio.sleep(self._rng.uniform(0.5, 3.0))
            self._rng.choice(restarted).machine.kill()
        await asyncio.sleep(self._rng.uniform(0.5, LOOK_S))
        for member in hanging:
            member.machine.resume()
        await asyncio.sleep(LOOK_S)
        return self._look()

    def _look(self) -> list[Violation]:
        nodes = self._members.serving
        self._note_leavers(nodes)
        going_on = [node for node in nodes if node.left_service is None]
        newest = max(going_on, key=lambda node: node.image.end_offset, default=None)
        if newest is None:
            return []
        return [
            Violation(
                "M8",
                f"node {node.node_id} serves what it knows up to {node.image.end_offset}, and node {newest.node_id} has another history",
            )
            for node in going_on
            if not _is_beginning(node.image, newest.image)
        ]

    def _note_leavers(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.left_service is not None:
                self._world.sometimes.note("a node left service for good")

    def _home(self) -> Member:
        """Whoever keeps the metadata; with etcd, any node."""
        return next(iter(self._members.by_id.values()))


def _is_beginning(image: Image, newest: Image) -> bool:
    """Whether what the one has applied is what the other began with."""
    if image.end_offset == newest.end_offset and list(image.facts()) != list(newest.facts()):
        return False
    return [reign for reign in newest.reigns if reign.offset < image.end_offset] == [*image.reigns]
