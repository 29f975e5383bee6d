"""Trouble, drawn from the seed: one fault after another for as long as the clients work.

Every fault heals by itself after a while, so that any two of them may overlap and none lasts for ever; but for a disk that is full until
the node has emptied it (`full_disk.py`). Rot
touches what lies below the recovery point, and files that can be rebuilt: above the recovery point rot cannot
be told from a torn write, and what was torn may be cut.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

from ropewalk.records.batch import HEADER_BYTES
from ropewalk.sim.clients.workload import Workload
from ropewalk.sim.judges.group_history import Jumped
from ropewalk.sim.judges.history import ClockJumped, Rotted
from ropewalk.sim.machines.durable_batches import DurableBatch, durable_batches
from ropewalk.sim.machines.storage import StoredFile
from ropewalk.sim.machines.world import Machine
from ropewalk.sim.runs.node.full_disk import FullDisk
from ropewalk.sim.runs.node.keeper import Keeper, draw_error

Fault = Callable[[], Awaitable[None]]

_CLEANED_SUFFIX = ".cleaned"
_DAY_MS = 86_400_000
"""How the name of a file ends that compaction is writing."""


class Nemesis:
    def __init__(self, workload: Workload, machine: Machine, keeper: Keeper, hosts: list[str]) -> None:
        self._workload = workload
        self._world = workload.world
        self._machine = machine
        self._keeper = keeper
        self._hosts = hosts
        self._rng: random.Random = self._world.rng_for("nemesis")
        self._full_disk = FullDisk(workload, machine, keeper, self._rng)
        self.fault_count = 0
        self._faults: list[tuple[int, Fault]] = [
            (20, self._cut_power),
            (20, self._cut_power_within),
            (10, self._cut_power_while_starting),
            (12, self._kill),
            (6, self._stop_in_order),
            (8, self._fail_sync),
            (8, self._fail_write_back),
            (8, self._fail_sync_while_stopping),
            (12, self._reset_connections),
            (6, self._cut_direction),
            (5, self._cut_off),
            (5, self._silence),
            (12, self._stall),
            (8, self._kill_then_cut_power),
            (12, self._fill_disk),
            (12, self._full_disk.befall),
            (12, self._rot),
            (8, self._evict),
            # Of a node that starts with a wrong clock less is owed, so some runs have only jumps that no start falls into.
            (4, self._jump_clock) if self._rng.random() < 0.5 else (16, self._jump_by_days),
            (8, self._cut_power_in_compaction),
            (5, self._fill_disk_in_compaction),
            (3, self._fail_sync_in_compaction),
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
        if abs(self._machine.clock.offset_ms) >= _DAY_MS:
            self._set_clock_right("")
        elif self._machine.clock.offset_ms:
            self._set_clock(0)
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

    async def _fail_write_back(self) -> None:
        """In the background, while nobody syncs: whoever syncs next is told, and everybody else who has it open, once."""
        platters, code = self._machine.platters, draw_error(self._rng)
        has_failed = False

        def strike() -> None:
            nonlocal has_failed
            has_failed = platters.fail_write_back(code)

        platters.stall(self._world.now_s + 0.3)
        await asyncio.sleep(self._rng.uniform(0.05, 0.3))
        await self._keeper.fail_sync(strike, is_lying=lambda: has_failed)

    async def _fail_sync_while_stopping(self) -> None:
        """Mostly the one that is under way when the node is told to stop, and that nobody waits for any more then."""
        after, code = self._rng.choice([0, 0, 0, 0, 1, 3]), draw_error(self._rng)
        only_unawaited = after == 0 and self._rng.random() < 0.7
        self._machine.platters.stall(self._world.now_s + 0.3)
        await asyncio.sleep(self._rng.uniform(0.05, 0.25))
        await self._keeper.stop_while_sync_fails(after=after, code=code, only_unawaited=only_unawaited)

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
        """A power cut soon after there is room again finds what failed writes left, and what was made of it."""
        platters = self._machine.platters
        platters.capacity_bytes = platters.used_bytes + self._rng.choice([0, 10, 300, 4000])
        if self._rng.random() < 0.5:
            self._later(platters.make_room)
            return
        await asyncio.sleep(self._rng.uniform(0.2, 2.0))
        platters.make_room()
        await asyncio.sleep(self._rng.uniform(0.1, 2.0))
        self._machine.cut_power()

    async def _cut_power_in_compaction(self) -> None:
        """Anywhere between its first new file and the name that makes it count, or soon after."""
        change_count = self._rng.randrange(0, 25)

        def strike() -> None:
            self._world.sometimes.note("the power failed in a compaction")
            self._machine.cut_power_after(change_count)

        self._machine.platters.when_created(_CLEANED_SUFFIX, strike)
        await asyncio.sleep(self._rng.uniform(0.5, 3.0))

    async def _fill_disk_in_compaction(self) -> None:
        platters, room_bytes = self._machine.platters, self._rng.choice([0, 10, 300, 4000])

        def strike() -> None:
            self._world.sometimes.note("the disk ran full in a compaction")
            platters.capacity_bytes = platters.used_bytes + room_bytes
            self._later(platters.make_room)

        platters.when_created(_CLEANED_SUFFIX, strike)
        await asyncio.sleep(self._rng.uniform(0.5, 3.0))

    async def _fail_sync_in_compaction(self) -> None:
        platters = self._machine.platters

        def strike() -> None:
            self._world.sometimes.note("a sync failed in a compaction")
            platters.fail_syncs(1)

        await self._keeper.fail_sync(lambda: platters.when_created(_CLEANED_SUFFIX, strike))

    async def _evict(self) -> None:
        self._machine.platters.evict(share=self._rng.choice([0.3, 1.0]))

    async def _jump_clock(self) -> None:
        jump_ms = self._rng.choice([-7_200_000, -60_000, -1_000, 1_000, 60_000, 7_200_000])
        self._world.sometimes.note("the clock jumped forward" if jump_ms > 0 else "the clock jumped back")
        self._set_clock(self._machine.clock.offset_ms + jump_ms)

    async def _jump_by_days(self) -> None:
        """For a while, within one life of the node, from when it has started: nothing may come of it."""
        process, clock = self._machine.process, self._machine.clock
        if process is None or not self._machine.has_started or clock.offset_ms:
            return
        self._world.sometimes.note("the clock jumped by days")
        clock.offset_ms = self._rng.choice([-30, -3, -1, 1, 3, 30]) * _DAY_MS
        process.on_death(self._set_clock_right)
        await asyncio.sleep(self._rng.uniform(0.5, 8.0))
        self._set_clock_right("")

    def _set_clock_right(self, _cause: str) -> None:
        self._machine.clock.offset_ms = 0

    async def _rot(self) -> None:
        """Flip a few bits, then let the pages go cold so that somebody may notice."""
        for _ in range(self._rng.randrange(1, 3)):
            if self._rng.random() < 0.7:
                self._rot_batch()
            else:
                self._rot_derived_file()
        if self._rng.random() < 0.7:
            self._machine.platters.evict()
        if self._rng.random() < 0.3:
            self._machine.kill()

    def _rot_batch(self) -> None:
        """A batch below the recovery point: it may be refused from here on, and nothing else may."""
        candidates = self._durable_batches()
        if not candidates:
            return
        batch = self._rng.choice(candidates)
        start, header = batch.position, batch.header
        position = self._rng.randrange(start, start + header.size_bytes)
        if self._rng.random() < 0.5:
            position = start + position % HEADER_BYTES  # most of a batch is records; headers matter as much
        self._workload.journal.note(Rotted(batch.partition, header.base_offset, header.end_offset))
        self._world.sometimes.note("durable bytes rotted")
        self._flip(batch.file, position, str(batch.partition))

    def _rot_derived_file(self) -> None:
        """What can be rebuilt, or is kept twice: nobody may notice."""
        candidates = [
            (path, file)
            for path, file in self._machine.platters.files()
            if path.endswith((".index", ".snapshot", "/recovery-points", "/log-starts"))
            and file.durable_bytes
        ]
        if candidates:
            path, file = self._rng.choice(candidates)
            position = self._rng.randrange((file.durable_bytes + 1) // 2)  # of two copies only the first
            self._world.sometimes.note("a file that can be rebuilt rotted")
            self._flip(file, position, path)

    def _set_clock(self, offset_ms: int) -> None:
        self._machine.clock.offset_ms = offset_ms
        self._workload.journal.note(ClockJumped())
        self._workload.group_journal.note(Jumped())

    def _flip(self, file: StoredFile, position: int, what: str) -> None:
        self._world.trace.note("rot", what, position)
        file.rot(position, 1 << self._rng.randrange(8))

    def _durable_batches(self) -> list[DurableBatch]:
        """Of replicated state that has rotted a single node can but refuse to serve any, so it is left alone."""
        found = [
            batch
            for batch in durable_batches(self._machine.platters)
            if self._workload.topics.is_known(batch.partition.topic)
        ]
        segments = {(batch.partition, batch.file.number) for batch in found}
        if any(count > 1 for count in Counter(partition for partition, _ in segments).values()):
            self._world.sometimes.note("a segment was closed")
        return found

    def _later(self, mend: Callable[[], None]) -> None:
        self._world.loop.call_later(self._rng.uniform(0.2, 4.0), mend)
