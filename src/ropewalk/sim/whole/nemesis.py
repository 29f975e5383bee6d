"""Whoever attacks a simulated cluster: one fault after the other, some at once, none that a cluster need not survive.

Disks are not wiped and bits do not rot here: with three copies and any node in any state, that may lose records rightly. The
simulator of cores does these, where it knows what may be lost.
"""

import asyncio
from typing import Final

from ropewalk.sim.whole.members import Member, Members

REST_S: Final = (0.3, 2.5)


class Nemesis:
    def __init__(self, members: Members) -> None:
        self._members = members
        self._world = members.world
        self._rng = self._world.rng_for("nemesis")
        self.fault_count = 0

    async def run(self, until_s: float) -> None:
        faults = [
            self._kill,
            self._kill,
            self._kill_the_controller,
            self._cut_power,
            self._cut_all_power,
            self._stop,
            self._isolate,
            self._cut_one_way,
            self._reset,
            self._stall_a_disk,
        ]
        if self._members.etcd is not None:
            faults += [self._kill_etcd_member, self._lose_etcd]
        while self._world.now_s < until_s:
            await asyncio.sleep(self._rng.uniform(*REST_S))
            self.fault_count += 1
            await self._rng.choice(faults)()

    async def heal(self) -> None:
        """Everything runs and reaches everything; nothing is done to it any more."""
        self._world.network.mend_all()
        etcd = self._members.etcd
        if etcd is not None:
            etcd.mend()
            for number, machine in enumerate(etcd.machines):
                if not machine.is_running:
                    await etcd.start_member(number)
        for member in self._members.all:
            member.machine.platters.heal()

    async def _kill(self) -> None:
        self._note("a node was killed")
        self._any().machine.kill()

    async def _kill_the_controller(self) -> None:
        controller = self._members.controller()
        if controller is not None:
            self._note("the controller was killed")
            controller.machine.kill()

    async def _cut_power(self) -> None:
        self._note("a node lost its power")
        self._any().machine.cut_power()

    async def _cut_all_power(self) -> None:
        """A building's: all nodes in the same instant."""
        self._note("all nodes lost their power")
        for member in self._members.all:
            member.machine.cut_power()

    async def _stop(self) -> None:
        self._note("a node was stopped in order")
        await self._any().stop()

    async def _isolate(self) -> None:
        """From the other nodes, or from everybody; it goes on as if nothing had happened."""
        self._note("a node was cut off")
        alone = self._any().machine.name
        others = [member.machine.name for member in self._members.all if member.machine.name != alone]
        if self._members.etcd is not None and self._rng.random() < 0.5:
            others += [machine.name for machine in self._members.etcd.machines]
        await self._while_cut(
            [(one, other) for name in others for one, other in ((alone, name), (name, alone))]
        )

    async def _cut_one_way(self) -> None:
        self._note("a node was not heard by another")
        source, target = self._rng.sample([member.machine.name for member in self._members.all], 2)
        await self._while_cut([(source, target)])

    async def _while_cut(self, ways: list[tuple[str, str]]) -> None:
        network = self._world.network
        for source, target in ways:
            network.cut(source, target)
        await asyncio.sleep(self._rng.choice([0.3, 1.0, 3.0, 9.0]))
        for source, target in ways:
            network.mend(source, target)

    async def _reset(self) -> None:
        connections = self._world.network.connections()
        if connections:
            self._note("a connection was reset")
            self._world.network.reset(self._rng.choice(connections))

    async def _stall_a_disk(self) -> None:
        self._note("a disk stalled")
        seconds = self._rng.choice([0.2, 1.0, 4.0])
        self._any().machine.platters.stall(self._world.now_s + seconds)

    async def _kill_etcd_member(self) -> None:
        etcd = self._members.etcd
        assert etcd is not None
        number = self._rng.randrange(len(etcd.machines))
        if etcd.machines[number].is_running:
            self._note("a member of etcd was killed")
            etcd.kill_member(number)
            await asyncio.sleep(self._rng.uniform(0.5, 3.0))
            await etcd.start_member(number)

    async def _lose_etcd(self) -> None:
        """All of it, for a while."""
        etcd = self._members.etcd
        assert etcd is not None
        self._note("all of etcd was lost")
        running = [number for number, machine in enumerate(etcd.machines) if machine.is_running]
        for number in running:
            etcd.kill_member(number)
        await asyncio.sleep(self._rng.uniform(0.5, 8.0))
        for number in running:
            await etcd.start_member(number)

    def _any(self) -> Member:
        return self._rng.choice(self._members.all)

    def _note(self, what: str) -> None:
        self._world.sometimes.note(what)
