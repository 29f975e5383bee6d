"""What befalls a cluster of whole nodes: processes, machines, disks, clocks, the network, and etcd.

Each run has a taste of its own: about half of the kinds of faults happen in it, so that rare combinations are not drowned
by frequent ones. Every fault heals by itself after a while, but for a disk that is
full. Only so much is destroyed that the promises can be kept: whoever
holds the last copy of what was promised keeps its disk.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Image
from ropewalk.metadata.internal_topics import TRANSACTIONS_TOPIC
from ropewalk.sim.clients.workload import Workload
from ropewalk.sim.judges.history import ClockJumped
from ropewalk.sim.machines.etcd import NO_FAULTS, EtcdFaults
from ropewalk.sim.runs.cluster.members import PEER_PORT, Member, Members, put_down
from ropewalk.sim.runs.cluster.rot import Rot

Fault = Callable[[], Awaitable[None]]

_DAY_MS: Final = 86_400_000
ALONE_S_MAX: Final = 12.0
"""For a node to start while the others are away: their sessions have to end first."""

ETCD_TROUBLE: Final = EtcdFaults(
    request_lost=0.02,
    answer_lost=0.03,
    done_late=0.02,
    watch_cancelled=0.03,
    watch_deaf=0.01,
    watch_delay_s_max=0.1,
)


class ClusterNemesis:
    def __init__(
        self,
        workload: Workload,
        members: Members,
        image: Image,
        emptied: dict[NodeId, bytes],
        rot: Rot,
        *,
        strikes_coordinators: bool = False,
        spoils_disks: bool = False,
        clock_error_ms_max: int | None = None,
    ) -> None:
        """`image` is the cluster as it is, whoever may know of it; `emptied` is told whose disk was replaced."""
        self._clock_error_ms_max = clock_error_ms_max
        self._workload = workload
        self._world = workload.world
        self._members = members
        self._image = image
        self._rng: random.Random = self._world.rng_for("nemesis")
        self._pause_s = self._rng.choice([0.5, 1.0, 2.0])
        self._emptied = emptied
        self._is_disk_due = False
        """Whether somebody has asked if all is whole, and waits for the moment to put a disk back."""
        self._rot = rot
        self.fault_count = 0
        spoiling: list[Fault] = []
        if spoils_disks:
            spoiling += [self._put_disk_back] * 2 + [self._rot_stored_bytes] * 2
        kinds: list[Fault] = [
            self._kill,
            self._kill,
            self._cut_power,
            self._cut_power_within,
            self._cut_power_everywhere,
            self._cut_power_of_some,
            self._pause,
            self._pause,
            self._stop_in_order,
            self._reset_connections,
            self._cut_direction,
            self._cut_off,
            self._stall,
            self._stall_then_cut_power,
            self._stall_then_cut_power,
            self._fill_disk,
            self._fill_disk_for_long,
            self._replace_disk,
            self._replace_disk,
            *spoiling,
            self._jump_clock,
        ]
        if members.etcd is not None:
            kinds += [
                self._cut_off_from_etcd,
                self._kill_member_of_etcd,
                self._take_etcd_down,
                self._expire_leases,
                self._compact_etcd,
                self._fill_etcd,
                self._fill_etcd,
            ]
        if strikes_coordinators:
            kinds += [self._strike_coordinator] * 3 + [self._strand_coordinator] * 2
        self._kinds = [kind for kind in kinds if self._rng.random() < 0.5] or [self._kill]
        if strikes_coordinators and self._rng.random() < 0.15:
            # Among many faults little is decided that could arrive late.
            self._kinds = [self._strand_coordinator]

    async def run(self) -> None:
        if self._members.etcd is not None and self._rng.random() < 0.5:
            self._members.etcd.faults = ETCD_TROUBLE
        async with asyncio.TaskGroup() as self._errands:
            while True:
                await asyncio.sleep(self._rng.uniform(0.2, 2.0) * self._pause_s)
                if self._workload.is_over:
                    return
                fault = self._rng.choice(self._kinds)
                self._world.trace.note("fault", fault.__name__)
                self.fault_count += 1
                await fault()

    async def heal(self) -> None:
        """End whatever may still be going on."""
        for member in self._members.by_id.values():
            member.machine.platters.heal()
            member.machine.clock.offset_ms = 0
            member.machine.resume()
        self._world.network.mend_all()
        etcd = self._members.etcd
        if etcd is not None:
            etcd.faults = NO_FAULTS
            etcd.state.make_room()
            etcd.mend()
            for number, machine in enumerate(etcd.machines):
                if not machine.is_running:
                    await etcd.start_member(number)

    # Processes and machines.

    async def _kill(self) -> None:
        member = self._any()
        if member.machine.is_running:
            self._note("the node was killed")
        member.machine.kill()

    async def _cut_power(self) -> None:
        self._any().machine.cut_power()

    async def _cut_power_within(self) -> None:
        """At one of the next changes of the disk, wherever in an operation that is."""
        machine = self._any().machine
        if self._rng.random() < 0.3:
            machine.cut_power_after_rename()
        else:
            machine.cut_power_after(self._rng.choice([0, 1, 2, 3, 5, 10, 30, 100]))

    async def _cut_power_of_some(self) -> None:
        members = list(self._members.by_id.values())
        for member in self._rng.sample(members, self._rng.randrange(2, len(members))):
            member.machine.cut_power()
            if self._rng.random() < 0.5:
                await asyncio.sleep(self._rng.uniform(0.0, 0.3))

    async def _cut_power_everywhere(self) -> None:
        self._note("the power failed everywhere")
        for member in self._members.by_id.values():
            member.machine.cut_power()

    async def _pause(self) -> None:
        machine = self._any().machine
        if machine.process is None or machine.process.is_paused:
            return
        self._note("a process was paused")
        machine.pause()
        self._world.loop.call_later(self._rng.choice([0.3, 2.0, 4.0, 8.0]), machine.resume)

    async def _strike_coordinator(self) -> None:
        """Whoever looks after groups or transactions, if there is such a topic by now."""
        leaders = self._leaders_of("__")
        if not leaders:
            return
        machine = self._members.by_id[self._rng.choice(leaders)].machine
        self._note("a coordinator was struck")
        blow = self._rng.choice(["kill", "cut power", "pause", "cut off", "cut off"])
        if blow == "kill":
            machine.kill()
        elif blow == "cut power":
            machine.cut_power()
        elif blow == "cut off":
            # What it had sent arrives when another has long taken its place.
            others = [name for name in self._members.names if name != machine.name]
            if self._members.etcd is not None:
                others += [member.name for member in self._members.etcd.machines]
            self._part(machine.name, others)
        elif machine.process is not None and not machine.process.is_paused:
            machine.pause()
            self._world.loop.call_later(self._rng.choice([2.0, 4.0, 8.0]), machine.resume)

    async def _strand_coordinator(self) -> None:
        """Some of the connections that a coordinator of transactions has made are stuck, so what it decided does not get to the
        others; then it is cut off, and somebody takes its place; then everything arrives, late."""
        leaders = self._leaders_of(TRANSACTIONS_TOPIC)
        if not leaders:
            return
        name = self._members.by_id[self._rng.choice(leaders)].machine.name
        others = [other for other in self._members.names if other != name]
        if self._members.etcd is not None:
            others += [machine.name for machine in self._members.etcd.machines]
        ends = [end for one in self._world.network.connections() for end in (one, one.peer)]
        stuck = [
            end
            for end in ends
            if end.local[0] == name and end.remote[1] == PEER_PORT and self._rng.random() < 0.5
        ]
        for end in stuck:
            end.is_black_hole = True
        self._note("a coordinator was stranded")

        await asyncio.sleep(self._rng.uniform(0.5, 2.0))
        for other in others:
            self._world.network.partition(name, other)
        await asyncio.sleep(self._rng.uniform(3.0, 8.0))
        for other in others:
            self._world.network.mend(name, other)
            self._world.network.mend(other, name)
        for end in stuck:
            end.is_black_hole = False

    def _leaders_of(self, prefix: str) -> list[NodeId]:
        return [
            partition.leader
            for name, topic in self._image.topics.items()
            if name.startswith(prefix)
            for partition in topic.partitions
            if partition.leader is not None
        ]

    async def _stop_in_order(self) -> None:
        self._errands.create_task(self._any().stop())

    # Disks and clocks.

    async def _stall(self) -> None:
        self._any().machine.platters.stall(self._world.now_s + self._rng.uniform(0.1, 5.0))

    async def _stall_then_cut_power(self) -> None:
        """A power cut during a stall finds much that is written and not synced. Where all fail at once, whoever was stalled may
        be the first to be back."""
        members = list(self._members.by_id.values())
        stalled = self._rng.sample(members, self._rng.randrange(1, len(members)))
        stall_s = self._rng.uniform(0.3, 2.0)
        for member in stalled:
            member.machine.platters.stall(self._world.now_s + stall_s)
        await asyncio.sleep(self._rng.uniform(0.1, stall_s))
        for member in members if self._rng.random() < 0.7 else stalled:
            member.machine.cut_power()

    async def _fill_disk(self) -> None:
        platters = self._any().machine.platters
        if platters.is_short_of_room:
            return
        self._note("a disk ran full")
        platters.capacity_bytes = platters.used_bytes + self._rng.choice([0, 10, 300, 4000])
        self._later(platters.make_room)

    async def _fill_disk_for_long(self) -> None:
        """One, until everything is healed or somebody deletes enough. With a second one nobody could write any more."""
        members = list(self._members.by_id.values())
        if any(member.machine.platters.is_short_of_room for member in members):
            return
        self._note("a disk stayed full")
        platters = self._rng.choice(members).machine.platters
        platters.capacity_bytes = platters.used_bytes + self._rng.choice([0, 300])

    async def _replace_disk(self) -> None:
        member = self._any()
        broker = self._image.brokers.get(member.node_id)
        if broker is None or self._members.holds_home(member.node_id) or not self.is_spare(member.node_id):
            return
        self._note("a disk was replaced by an empty one")
        self._emptied[member.node_id] = broker.directory
        member.machine.replace_disk()

    async def _put_disk_back(self) -> None:
        """A copy is taken while the node is not running, and put back when it has been started since. Often the others are away by
        then, and it was the last one in sync: whoever takes it for what it was lets it lead."""
        member = self._any()
        if not self._members.holds_home(member.node_id) and not member.is_held_down:
            self._errands.create_task(self._copy_and_put_back(member))

    async def _copy_and_put_back(self, member: Member) -> None:
        member.is_held_down = True
        try:
            if self._rng.random() < 0.5:
                await member.stop()
            member.machine.kill()
            if self._rot.unmended():
                return  # what has rotted and was mended would come back with the copy
            put_back = member.machine.platters.copy()
        finally:
            member.is_held_down = False
        copied = self._image.brokers.get(member.node_id)
        await asyncio.sleep(self._rng.uniform(1.0, 5.0))
        while not self.is_spare(member.node_id) or member.machine.platters.is_short_of_room:
            if self._workload.is_over:
                return
            await asyncio.sleep(0.2)
        broker = self._image.brokers.get(member.node_id)
        if copied is None or broker is None or broker.epoch == copied.epoch:
            return
        self._is_disk_due = True
        try:
            await self._put_back(member, broker.directory, put_back)
        finally:
            self._is_disk_due = False

    async def _put_back(self, member: Member, directory: bytes, put_back: Callable[[], None]) -> None:
        others: list[Member] = []
        if self._rng.random() < 0.6:
            others = [
                other
                for other in self._members.by_id.values()
                if other is not member and not self._members.holds_home(other.node_id)
            ]
            for other in others:
                put_down(other)
            await self._workload.until(lambda: self._is_last(member.node_id), within_s=ALONE_S_MAX)
        self._note("a disk was put back to a copy from before")
        self._emptied[member.node_id] = directory
        member.machine.kill()
        put_back()
        if others:
            await self._workload.until(lambda: member.serving is not None, within_s=ALONE_S_MAX)
            await asyncio.sleep(self._rng.uniform(0.0, 2.0))
            for other in others:
                other.is_held_down = False

    def _is_last(self, node_id: NodeId) -> bool:
        """Whether it is the only one in sync somewhere."""
        return any(
            partition.isr == (node_id,)
            for topic in self._image.topics.values()
            for partition in topic.partitions
        )

    async def _rot_stored_bytes(self) -> None:
        """Of one copy, while all are whole. Whether anybody notices depends on who reads; often the node is started again then."""
        member = self._any()
        topics = [topic.name for topic in self._image.topics.values()]
        if not self.is_spare(member.node_id) or self._rot.strike(member, self._rng, topics) is None:
            return
        fate = self._rng.random()
        if fate < 0.3:
            member.machine.kill()
        elif fate < 0.9:
            self._errands.create_task(self._scrub(member, stops=fate < 0.6))

    async def _scrub(self, member: Member, *, stops: bool) -> None:
        await member.scrub()
        if stops:
            await member.stop()

    def is_spare(self, node_id: NodeId) -> bool:
        """Whether everybody is whole: two disks at a time are more than the minimum of two copies survives."""
        if self._is_disk_due or self._rot.unmended():
            return False
        for emptied, directory in list(self._emptied.items()):
            broker = self._image.brokers.get(emptied)
            if broker is not None and broker.directory == directory:
                return False
        partitions = [partition for topic in self._image.topics.values() for partition in topic.partitions]
        if any({*partition.isr} != {*partition.replicas} or partition.is_moving for partition in partitions):
            return False
        if self._emptied:
            self._note("an empty disk was filled again")
            self._emptied.clear()
        return any(node_id in partition.replicas for partition in partitions)

    async def _jump_clock(self) -> None:
        clock = self._any().machine.clock
        jump_ms = self._rng.choice(
            [-10 * _DAY_MS, -7_200_000, -60_000, -1_000, 1_000, 60_000, 7_200_000, 10 * _DAY_MS]
        )
        self._note("the clock jumped forward" if jump_ms > 0 else "the clock jumped back")
        if abs(jump_ms) >= _DAY_MS:
            self._note("the clock jumped by days")
        clock.offset_ms += jump_ms
        if self._clock_error_ms_max is not None:
            bound_ms = self._clock_error_ms_max
            clock.offset_ms = min(max(clock.offset_ms, -bound_ms), bound_ms)
        self._workload.journal.note(ClockJumped())

        def set_right() -> None:
            clock.offset_ms = 0

        self._later(set_right)

    # The network.

    async def _reset_connections(self) -> None:
        for connection in self._world.network.connections():
            if self._rng.random() < 0.4:
                self._note("a connection was reset")
                self._world.network.reset(connection)

    async def _cut_direction(self) -> None:
        source, target = self._rng.sample(self._members.names, 2)
        self._note("a direction was cut")
        self._world.network.cut(source, target)
        self._later(lambda: self._world.network.mend(source, target))

    async def _cut_off(self) -> None:
        """From the other nodes; clients still reach it, and perhaps etcd: so it may seem well to itself."""
        self._note("a node was cut off")
        name = self._rng.choice(self._members.names)
        others = [other for other in self._members.names if other != name]
        if self._members.etcd is not None and self._rng.random() < 0.5:
            others += [machine.name for machine in self._members.etcd.machines]
        self._part(name, others)

    def _part(self, name: str, others: list[str]) -> None:
        for other in others:
            self._world.network.partition(name, other)

        def mend() -> None:
            for other in others:
                self._world.network.mend(name, other)
                self._world.network.mend(other, name)

        self._later(mend)

    # etcd.

    async def _cut_off_from_etcd(self) -> None:
        etcd = self._members.etcd
        assert etcd is not None
        self._note("a node was cut off from etcd")
        self._part(self._rng.choice(self._members.names), [machine.name for machine in etcd.machines])

    async def _kill_member_of_etcd(self) -> None:
        self._note("a member of etcd was killed")
        self._kill_in_etcd([self._rng.randrange(3)])

    async def _take_etcd_down(self) -> None:
        self._note("all of etcd was down")
        self._kill_in_etcd([0, 1, 2])

    def _kill_in_etcd(self, numbers: list[int]) -> None:
        etcd = self._members.etcd
        assert etcd is not None
        for number in numbers:
            etcd.kill_member(number)

        async def start_again() -> None:
            await asyncio.sleep(self._rng.uniform(0.3, 6.0))
            for number in numbers:
                if not etcd.machines[number].is_running:
                    await etcd.start_member(number)

        self._errands.create_task(start_again())

    async def _expire_leases(self) -> None:
        assert self._members.etcd is not None
        self._members.etcd.expire_leases()
        self._note("a lease ran out")

    async def _compact_etcd(self) -> None:
        assert self._members.etcd is not None
        self._members.etcd.compact()

    async def _fill_etcd(self) -> None:
        """By what somebody else keeps there; an operator makes room some time later. Whoever decides may be lost meanwhile."""
        etcd = self._members.etcd
        assert etcd is not None
        if etcd.state.is_full:
            return
        self._note("etcd ran full")
        if self._rng.random() < 0.5 and self._image.controller_id in self._members.by_id:
            self._members.by_id[self._image.controller_id].machine.kill()
            await asyncio.sleep(self._rng.uniform(0.3, 1.5))  # the next one may be about to take over
        etcd.state.fill(on_its_way_count=self._rng.choice([0, 1, 2, 5]))
        self._world.loop.call_later(self._rng.uniform(1.0, 9.0), etcd.state.make_room)

    def _any(self) -> Member:
        return self._rng.choice(list(self._members.by_id.values()))

    def _note(self, what: str) -> None:
        self._world.sometimes.note(what)

    def _later(self, mend: Callable[[], None]) -> None:
        self._world.loop.call_later(self._rng.choice([0.5, 3.0, 8.0]) * self._rng.uniform(0.4, 1.0), mend)
