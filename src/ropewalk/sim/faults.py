"""Trouble, drawn from the seed: one fault after another for as long as the clients work.

Every fault heals by itself after a while, so that any two of them may overlap and none lasts for ever. Rot
touches closed segments only, and index and snapshot files: above the recovery point rot cannot be told from
a torn write, and what was torn may be cut.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.records.batch import iterate
from ropewalk.sim.history import Rotted
from ropewalk.sim.keeper import Keeper
from ropewalk.sim.storage import StoredFile
from ropewalk.sim.workload import Workload
from ropewalk.sim.world import Machine

Fault = Callable[[], Awaitable[None]]

CLOSED_SEGMENTS_SPARED: Final = 2
"""The last segments of a partition may lie above its recovery point."""


class Nemesis:
    def __init__(self, workload: Workload, machine: Machine, keeper: Keeper, hosts: list[str]) -> None:
        self._workload = workload
        self._world = workload.world
        self._machine = machine
        self._keeper = keeper
        self._hosts = hosts
        self._rng: random.Random = self._world.rng_for("nemesis")
        self.fault_count = 0
        self._faults: list[tuple[int, Fault]] = [
            (20, self._cut_power),
            (20, self._cut_power_within),
            (10, self._cut_power_while_starting),
            (12, self._kill),
            (6, self._stop_in_order),
            (8, self._fail_sync),
            (12, self._reset_connections),
            (6, self._cut_direction),
            (5, self._cut_off),
            (5, self._silence),
            (12, self._stall),
            (8, self._kill_then_cut_power),
            (8, self._fill_disk),
            (12, self._rot),
            (8, self._evict),
            (4, self._jump_clock),
        ]

    async def run(self) -> None:
        weights = [weight for weight, _ in self._faults]
        while True:
            await asyncio.sleep(self._rng.uniform(0.3, 3.0))
            if self._workload.is_over:
                return
            (_, fault) = self._rng.choices(self._faults, weights)[0]
            self._world.trace.note("fault", fault.__name__)
            self.fault_count += 1
            await fault()

    def heal(self) -> None:
        """End whatever may still be going on."""
        self._machine.platters.heal()
        self._machine.clock.offset_ms = 0
        self._world.network.mend_all()

    async def _cut_power(self) -> None:
        self._machine.cut_power()

    async def _cut_power_within(self) -> None:
        """At one of the next changes of the disk, wherever in an operation that is."""
        if self._rng.random() < 0.3:
            self._machine.cut_power_after_rename()
        else:
            self._machine.cut_power_after(self._rng.choice([0, 1, 2, 3, 5, 10, 30, 100]))
        await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _cut_power_while_starting(self) -> None:
        self._machine.cut_power()
        self._machine.cut_power_after(self._rng.randrange(0, 30))
        await asyncio.sleep(self._rng.uniform(0.5, 2.0))

    async def _kill(self) -> None:
        if self._machine.is_running:
            self._world.sometimes.note("the node was killed")
        self._machine.kill()

    async def _stop_in_order(self) -> None:
        await self._keeper.stop()

    async def _fail_sync(self) -> None:
        await self._keeper.fail_sync()

    async def _reset_connections(self) -> None:
        connections = self._world.network.connections()
        for connection in connections:
            if self._rng.random() < 0.6:
                self._world.sometimes.note("a connection was reset")
                self._world.network.reset(connection)

    async def _cut_direction(self) -> None:
        host, node = self._rng.choice(self._hosts), self._machine.name
        ends = (host, node) if self._rng.random() < 0.5 else (node, host)
        self._world.sometimes.note("a direction was cut")
        self._world.network.cut(*ends)
        self._later(lambda: self._world.network.mend(*ends))

    async def _cut_off(self) -> None:
        host, node = self._rng.choice(self._hosts), self._machine.name
        self._world.sometimes.note("a host was cut off")
        self._world.network.partition(host, node)

        def mend() -> None:
            self._world.network.mend(host, node)
            self._world.network.mend(node, host)

        self._later(mend)

    async def _silence(self) -> None:
        connections = self._world.network.connections()
        if connections:
            self._world.sometimes.note("a connection went silent")
            self._world.network.blacken(self._rng.choice(connections))

    async def _stall(self) -> None:
        """A power cut during a stall finds much that is written and not synced."""
        stall_s = self._rng.uniform(0.1, 4.0)
        self._machine.platters.stall(self._world.now_s + stall_s)
        if self._rng.random() < 0.5:
            await asyncio.sleep(self._rng.uniform(0.0, stall_s))
            self._machine.cut_power()

    async def _kill_then_cut_power(self) -> None:
        """What only the page cache has survives the first and not the second, unless recovery synced it."""
        platters = self._machine.platters
        platters.stall(self._world.now_s + 2.0)
        await asyncio.sleep(self._rng.uniform(0.1, 2.0))
        await self._kill()
        platters.stalled_until_s = 0.0
        for _ in range(40):
            await asyncio.sleep(0.05)
            if self._machine.has_started:
                break
        platters.stall(self._world.now_s + 1.0)
        await asyncio.sleep(self._rng.uniform(0.1, 1.0))
        self._machine.cut_power()

    async def _fill_disk(self) -> None:
        platters = self._machine.platters
        platters.capacity_bytes = platters.used_bytes + self._rng.choice([0, 10, 300, 4000])
        self._later(platters.make_room)

    async def _evict(self) -> None:
        self._machine.platters.evict(share=self._rng.choice([0.3, 1.0]))

    async def _jump_clock(self) -> None:
        jump_ms = self._rng.choice([-7_200_000, -60_000, -1_000, 1_000, 60_000, 7_200_000])
        self._world.sometimes.note("the clock jumped forward" if jump_ms > 0 else "the clock jumped back")
        self._machine.clock.offset_ms += jump_ms

    async def _rot(self) -> None:
        """Flip a few bits, then let the pages go cold so that somebody may notice."""
        segments = self._closed_segments()
        if not segments:
            return
        for _ in range(self._rng.randrange(1, 3)):
            partition, file = self._rng.choice(segments)
            position = self._rng.randrange(len(file.data))
            hit = next(
                (
                    header
                    for start, header in iterate(file.data)
                    if start <= position < start + header.size_bytes
                ),
                None,
            )
            if hit is None:
                continue
            self._workload.journal.note(Rotted(partition, hit.base_offset, hit.end_offset))
            self._world.sometimes.note("durable bytes rotted")
            self._world.trace.note("rot", str(partition), position)
            file.rot(position, 1 << self._rng.randrange(8))
        if self._rng.random() < 0.7:
            self._machine.platters.evict()

    def _closed_segments(self) -> list[tuple[TopicPartition, StoredFile]]:
        by_directory: dict[str, list[StoredFile]] = {}
        for path, file in self._machine.platters.files():
            directory, _, name = path.rpartition("/")
            if name.endswith(".log") and name[:-4].isdigit():
                by_directory.setdefault(directory, []).append(file)
        closed: list[tuple[TopicPartition, StoredFile]] = []
        for partition in self._workload.topics.partitions:
            for directory, files in by_directory.items():
                if directory.rpartition("/")[2] == str(partition) and len(files) > 1:
                    self._world.sometimes.note("a segment was closed")
                    closed += [
                        (partition, file) for file in files[:-CLOSED_SEGMENTS_SPARED] if file.durable_bytes
                    ]
        return closed

    def _later(self, mend: Callable[[], None]) -> None:
        self._world.loop.call_later(self._rng.uniform(0.2, 4.0), mend)
