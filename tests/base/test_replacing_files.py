"""Replacing files: one or many, after a power cut at any moment each holds the former content or the other."""

import random

import pytest

from ropewalk.base.ports import read_whole, write_all_atomically, write_atomically
from ropewalk.sim.machines.disk import SimulatedDisk
from ropewalk.sim.machines.loop import SimulatedLoop
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.process import PowerCut, Process
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace

PATHS = ["/data/a", "/data/b", "/data/inside/c"]


class Machine:
    def __init__(self, seed: int, *, can_sync_everything: bool) -> None:
        self.platters = Platters(
            random.Random(seed), Trace(), Sometimes(), can_sync_everything=can_sync_everything
        )
        self.platters.is_waiting_allowed = True
        self.process = Process("host", 0)

    def disk(self) -> SimulatedDisk:
        self.process = Process("host", self.process.life + 1)
        loop: SimulatedLoop = None  # type: ignore[assignment]  # it is told of faults that do not happen here
        return SimulatedDisk(self.platters, self.process, loop)

    def cut_power(self) -> None:
        self.process.die("power")
        self.platters.lose_power()


@pytest.mark.parametrize("can_sync_everything", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_power_cut_leaves_the_former_content_or_the_other(seed: int, can_sync_everything: bool) -> None:
    for operation_count in range(100):
        machine = Machine(seed, can_sync_everything=can_sync_everything)
        disk = machine.disk()
        disk.make_directory("/data/inside")
        disk.sync_directory("/")
        disk.sync_directory("/data")
        for path in PATHS:
            write_atomically(disk, path, b"former")
        machine.platters.cut_power_after(operation_count, machine.cut_power)
        try:
            write_all_atomically(disk, [(path, b"other" * 100) for path in PATHS])
        except PowerCut:
            allowed = {b"former", b"other" * 100}
        else:
            machine.cut_power()
            allowed = {b"other" * 100}
        after = machine.disk()
        assert {read_whole(after, path) for path in PATHS} <= allowed
        if len(allowed) == 1:
            assert operation_count > 8
            return
    raise AssertionError("replacing three files takes more than a hundred operations")
