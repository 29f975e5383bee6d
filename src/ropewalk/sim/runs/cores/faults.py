"""What befalls a cluster of cores: machines, networks, clocks and the metadata home.

Each run has a taste of its own: about half of the kinds of faults happen in it, so that rare combinations are not drowned
by frequent ones. Only so much is destroyed that the promises can be kept: whoever holds the last copy of what was promised
keeps its disk.
"""

import random
from collections.abc import Callable
from typing import Final

from ropewalk.base.ids import NodeId
from ropewalk.sim.runs.cores.machine import SYNC_US, Key, Machine
from ropewalk.sim.runs.cores.network import HOME
from ropewalk.sim.runs.cores.process import Process, Surroundings
from ropewalk.sim.runs.cores.turns import Turns


class Nemesis:
    def __init__(
        self, around: Surroundings, machines: dict[NodeId, Machine], rng: random.Random, *, pause_us: int
    ) -> None:
        self._around, self._machines, self._rng = around, machines, rng
        self._nodes = list(machines)
        self._pause_us = pause_us
        self._is_over = False
        self._is_home_down = False
        self.fault_count = 0
        self._turns = Turns(around, rng, self.start)
        kinds: tuple[Callable[[], None], ...] = (
            self._kill,
            self._kill,
            self._cut_power,
            self._cut_power,
            self._cut_power_everywhere,
            self._pause,
            self._pause,
            self._cut_direction,
            self._cut_off,
            self._slow_disk,
            self._lose_disk,
            self._come_back_unheard,
            self._rot,
            self._stop,
            self._jump_clock,
            self._lose_watch,
            self._take_home_down,
            self._take_turns,
        )
        self._kinds = [kind for kind in kinds if rng.random() < 0.5] or [self._kill]
        around.home.unknown_share = rng.choice((0.0, 0.02, 0.1))

    def begin(self) -> None:
        home = self._around.home
        if home.address == HOME:
            home.is_up = lambda: not self._is_home_down
        else:
            home.is_up = lambda: NodeId(home.address) in self._around.processes and not self._is_home_down
        self._around.queue.after(self._rng.randrange(self._pause_us), self._strike)

    def start(self, node_id: NodeId) -> None:
        """A process on the machine, unless there is one."""
        if node_id in self._around.processes:
            return
        machine = self._machines[node_id]
        if machine.life and not machine.is_clean:
            self._note("a broker started again uncleanly")
        if machine.recover(self._rng):
            self._note("a replica was damaged")
        machine.life += 1
        self._around.processes[node_id] = Process(self._around, machine)
        self._trace("start", node_id)

    def heal(self) -> None:
        """Everything works from here on."""
        self._is_over = self._turns.is_over = True
        self._is_home_down = False
        around = self._around
        around.network.mend()
        around.network.weather.calm()
        around.home.unknown_share = 0.0
        for machine in self._machines.values():
            machine.clock_offset_ms = 0
            machine.sync_us = SYNC_US
        for process in list(around.processes.values()):
            process.go_on()
        for node_id in self._nodes:
            self.start(node_id)

    def _strike(self) -> None:
        if self._is_over:
            return
        self._around.queue.after(self._pause_us // 4 + self._rng.randrange(self._pause_us * 2), self._strike)
        self.fault_count += 1
        self._rng.choice(self._kinds)()

    # Processes.

    def _kill(self) -> None:
        process = self._any_process()
        if process is not None:
            self._note("a process was killed")
            self._end(process)

    def _cut_power(self) -> None:
        process = self._any_process()
        if process is not None:
            self._note("the power failed")
            self._end(process)
            self._lose_tail(process.machine)

    def _cut_power_everywhere(self) -> None:
        self._note("the power failed everywhere")
        for process in list(self._around.processes.values()):
            self._end(process)
            self._lose_tail(process.machine)

    def _pause(self) -> None:
        process = self._any_process()
        if process is not None and not process.is_paused:
            self._note("a process was paused")
            self._trace("pause", process.node_id)
            process.pause()
            self._around.queue.after(self._rng.choice((200_000, 2_000_000, 9_000_000)), process.go_on)

    def _stop(self) -> None:
        process = self._any_process()
        if process is not None:
            self._trace("stop", process.node_id)
            process.stop()
            self._around.queue.after(
                self._rng.randrange(1_000_000, 9_000_000), self._start_again, process.node_id
            )

    def _start_again(self, node_id: NodeId) -> None:
        process = self._around.processes.get(node_id)
        if process is not None and process.wants_to_stop_since_us is not None:
            self._around.queue.after(1_000_000, self._start_again, node_id)
        else:
            self.start(node_id)

    def _end(self, process: Process) -> None:
        self._trace("end", process.node_id)
        process.end()
        delay_us = self._rng.choice((50_000, 400_000, 3_000_000, 12_000_000))
        self._around.queue.after(self._rng.randrange(delay_us // 2, delay_us), self.start, process.node_id)

    def _take_turns(self) -> None:
        self._note("two replicas led in turns")
        self._turns.begin()

    # Disks.

    def _lose_tail(self, machine: Machine) -> None:
        if machine.lose_power(self._rng):
            self._note("a replica lost its unsynced tail")

    def _slow_disk(self) -> None:
        machine = self._machines[self._rng.choice(self._nodes)]
        self._note("a disk was slow")
        machine.sync_us = self._rng.choice((20_000, 300_000, 2_000_000))
        self._around.queue.after(self._rng.randrange(1_000_000, 10_000_000), self._mend_disk, machine)

    def _mend_disk(self, machine: Machine) -> None:
        machine.sync_us = SYNC_US

    def _lose_disk(self) -> None:
        node_id = self._rng.choice(self._nodes)
        if node_id == self._around.home.address or not self._is_spare(node_id, None):
            return
        machine = self._machines[node_id]
        process = self._around.processes.get(node_id)
        if process is not None:
            self._end(process)
        self._note("a broker came back with an empty disk")
        self._trace("disk lost", node_id)
        machine.lose_disk(self._rng)

    def _come_back_unheard(self) -> None:
        """With an empty disk, and unable to tell some leader, which goes by what it heard before."""
        deciding = [node_id for node_id, process in self._around.processes.items() if process.seat.is_active]
        node_id, other = self._rng.sample(self._nodes, 2)
        process = self._around.processes.get(node_id)
        if process is None or other in deciding or node_id == self._around.home.address:
            return
        if not self._is_spare(node_id, None):
            return
        self._note("a broker came back with an empty disk")
        self._trace("comes back unheard", node_id)
        process.end()
        process.machine.lose_disk(self._rng)
        self._around.network.cut(node_id, other)
        self._around.queue.after(self._rng.randrange(20_000, 400_000), self.start, node_id)
        self._around.queue.after(self._rng.randrange(1_000_000, 6_000_000), self._around.network.mend)

    def _rot(self) -> None:
        node_id = self._rng.choice(self._nodes)
        machine = self._machines[node_id]
        candidates = [key for key, log in machine.logs.items() if log.durable_end]
        if not candidates:
            return
        key = self._rng.choice(candidates)
        if not self._is_spare(node_id, key) or self._is_rotten_elsewhere(node_id, key):
            return
        log = machine.logs[key]
        log.rotten_at = self._rng.randrange(log.durable_end)
        self._trace("rot", node_id)
        process = self._around.processes.get(node_id)
        if process is not None and self._rng.random() < 0.8:
            self._end(process)

    def _is_spare(self, node_id: NodeId, only: Key | None) -> bool:
        """Whether everybody else who is counted on is whole: two disks at a time are more than two copies survive.

        A replica that nobody counts on yet may be let in by what its leader heard of it before.
        """
        for topic in self._around.home.image.topics.values():
            for partition in topic.partitions:
                key: Key = (topic.topic_id, partition.index)
                counted = (*partition.isr, *partition.eligible)
                if only not in (None, key) or node_id not in (*partition.replicas, partition.last_leader):
                    continue
                if only is None and partition.replication_factor == 1 and not partition.is_moving:
                    continue  # nobody promised that it survives its only disk
                others = [other for other in counted if other != node_id]
                is_counted = node_id in (*counted, partition.last_leader)
                if (is_counted and not others) or not all(self._is_whole(other, key) for other in others):
                    return False
        return True

    def _is_rotten_elsewhere(self, node_id: NodeId, key: Key) -> bool:
        """Rot that nobody has found yet goes along when its copy comes to be counted on."""
        return any(
            machine.logs[key].rotten_at is not None
            for other, machine in self._machines.items()
            if other != node_id and key in machine.logs
        )

    def _is_whole(self, node_id: NodeId, key: Key) -> bool:
        machine = self._machines[node_id]
        log = machine.logs.get(key)
        return key not in machine.amnesia and log is not None and log.rotten_at is None

    # The network, clocks and metadata.

    def _cut_direction(self) -> None:
        source, target = self._rng.sample([*self._nodes, HOME], 2)
        self._note("a direction was cut")
        self._around.network.cut(source, target)
        self._mend_later()

    def _cut_off(self) -> None:
        self._note("a node was cut off")
        node_id = self._rng.choice(self._nodes)
        # Clients may still reach it, and perhaps the home: that is when a node that is gone for the others seems well.
        others = [other for other in self._nodes if other != node_id]
        if self._rng.random() < 0.5:
            others.append(NodeId(HOME))
        for other in others:
            self._around.network.cut(node_id, other)
            self._around.network.cut(other, node_id)
        self._trace("cut off", node_id)
        self._mend_later()

    def _mend_later(self) -> None:
        delay_us = self._rng.choice((300_000, 3_000_000, 12_000_000))
        self._around.queue.after(delay_us, self._around.network.mend)

    def _jump_clock(self) -> None:
        machine = self._machines[self._rng.choice(self._nodes)]
        self._note("a clock jumped")
        machine.clock_offset_ms = self._rng.choice(
            (-864_000_000, -7_200_000, -60_000, 1_000, 60_000, 7_200_000, 864_000_000)
        )
        self._around.queue.after(self._rng.randrange(1_000_000, 9_000_000), self._set_clock, machine)

    def _set_clock(self, machine: Machine) -> None:
        machine.clock_offset_ms = 0

    def _lose_watch(self) -> None:
        self._around.home.cancel_watch(self._rng.choice(self._nodes))

    def _take_home_down(self) -> None:
        self._note("the metadata home was down")
        self._is_home_down = True
        self._around.queue.after(self._rng.randrange(300_000, 9_000_000), self._bring_home_up)

    def _bring_home_up(self) -> None:
        self._is_home_down = False

    def _any_process(self) -> Process | None:
        processes = self._around.processes
        return processes[self._rng.choice(list(processes))] if processes else None

    def _note(self, what: str) -> None:
        self._around.sometimes.note(what)

    def _trace(self, what: str, node_id: NodeId) -> None:
        self._around.trace.note(self._around.queue.now_us, "nemesis", what, node_id)


FAULT_PAUSES_US: Final = (700_000, 2_000_000, 5_000_000)
"""Between two faults, about: drawn once per run."""
