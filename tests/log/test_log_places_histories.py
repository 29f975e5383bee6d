"""Places against an oracle, on a disk that loses power: whatever was committed of an owner's state can be loaded.

Each seed is one history: records, deltas and snapshots of a few owners, deletions that want to go too far, cuts above the high watermark,
snapshots of the log, restarts, and power cuts in the middle of anything.
"""

import random

import pytest
from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, OwnerId, TopicPartition
from ropewalk.log.directory import DataDirectory
from ropewalk.log.log import Log
from ropewalk.log.places import Place
from ropewalk.log.storage import Storage
from ropewalk.records.control import BEGINS_HERE, OWNER_GONE
from ropewalk.sim.machines.disk import SimulatedDisk
from ropewalk.sim.machines.loop import SimulatedLoop
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.process import PowerCut, Process
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace
from tests.log.given import TOPIC_ID, append_many, close, settings, sync
from tests.log.stateful import OWNERS, write

NAME = TopicPartition("orders", 0)
SETTINGS = settings(segment_bytes=1500, index_interval_bytes=300, snapshot_interval_bytes=1500)


class Whole(Struct, frozen=True):
    """A snapshot that became whole, or an owner that went."""

    owner: OwnerId
    place: Place


class Machine:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.platters = Platters(self.rng, Trace(), Sometimes(), can_sync_everything=False)
        self.platters.is_waiting_allowed = True
        self.life = 0
        self.process = Process("host", 0)
        self.history: list[Whole] = []
        self.begun: dict[OwnerId, int] = {}
        """Where snapshots began that are not whole."""
        self.high_watermark = 0
        self.held_up_count = 0
        self.log: Log

    def start_up(self) -> None:
        self.life += 1
        self.process = Process("host", self.life)
        loop: SimulatedLoop = None  # type: ignore[assignment]  # it is told of faults that do not happen here
        storage = Storage(SimulatedDisk(self.platters, self.process, loop), files_max=3, index_bytes_max=400)
        self.directory = DataDirectory.open(storage, "/data", node_id=NodeId(0), rng=self.rng)
        self.directory.create_partition(NAME, TOPIC_ID)
        self.log = self.directory.open_log(
            NAME, TOPIC_ID, SETTINGS, now_ms=1000, leader_epoch_max=LeaderEpoch(0)
        )
        assert self.log.end_offset >= self.high_watermark, "what was committed is gone"
        self.on_shortened()
        sync(self.log)
        self.check()

    def on_shortened(self) -> None:
        """By a cut, or by a power cut."""
        end_offset = self.log.end_offset
        self.history = [each for each in self.history if each.place.whole_offset < end_offset]
        self.begun = {
            owner: offset
            for owner, offset in self.begun.items()
            if self.log.start_offset <= offset < end_offset
        }

    def check(self) -> None:
        for owner in OWNERS:
            whole = [each.place for each in self.history if each.owner == owner]
            last = whole[-1] if whole and whole[-1].start_offset != OWNER_GONE else None
            assert self.log.places.last_of(owner) == last
            committed = [place for place in whole if place.whole_offset < self.high_watermark]
            if committed and committed[-1].start_offset != OWNER_GONE:
                assert self.log.start_offset <= committed[-1].start_offset, "committed state was deleted"

    def step(self) -> None:
        log, rng = self.log, self.rng
        owner = rng.choice(OWNERS)
        match rng.randrange(14):
            case 0 | 1 | 2:
                append_many(log, 1)
            case 3:
                write(log, owner)
            case 4:
                self.note(owner, BEGINS_HERE)
                self.begun.pop(owner, None)
            case 5:
                self.begun[owner] = log.end_offset
                write(log, owner)
            case 6:
                if owner in self.begun:
                    self.note(owner, self.begun.pop(owner))
            case 7:
                if rng.random() < 0.2:
                    self.note(owner, OWNER_GONE)
            case 8:
                sync(log)
            case 9:
                self.high_watermark = rng.randrange(self.high_watermark, log.durable_offset + 1)
            case 10:
                self.directory.note(NAME, TOPIC_ID, log)
                self.directory.take_recovery_points().run()
            case 11:
                write_of_log = log.maintenance.take_snapshot(1000, force=True)
                if write_of_log is not None:
                    write_of_log.run()
                    log.maintenance.on_snapshot(write_of_log)
            case 12:
                self.delete()
            case _:
                self.cut()

    def note(self, owner: OwnerId, start: int) -> None:
        """Before it is written: it may be there although the power fails on the way."""
        offset = self.log.end_offset
        self.history.append(Whole(owner, Place(offset if start == BEGINS_HERE else start, offset)))
        write(self.log, owner, start=start)

    def delete(self) -> None:
        log = self.log
        limit_offset = Offset(self.high_watermark)
        if log.start_offset > limit_offset:
            return
        wanted = Offset(self.rng.randrange(log.start_offset, limit_offset + 1))
        log.trimming.plan_start(wanted, limit_offset=limit_offset)
        self.held_up_count += bool(log.trimming.held_up_by())
        assert log.trimming.planned_start_offset == wanted or log.trimming.held_up_by()
        self.directory.note(NAME, TOPIC_ID, log)
        self.directory.take_log_starts().run()
        removal = log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset)
        # A snapshot that began below the start will never be whole.
        self.begun = {owner: at for owner, at in self.begun.items() if at >= log.start_offset}
        if removal is not None:
            removal.run()

    def cut(self) -> None:
        log = self.log
        lowest = max(self.high_watermark, log.start_offset)
        if lowest >= log.end_offset:
            return
        offset = log.trimming.boundary_at(Offset(self.rng.randrange(lowest, log.end_offset)))
        if offset < lowest:
            return
        log.trimming.plan_cut(offset)
        self.directory.note(NAME, TOPIC_ID, log)
        self.directory.take_recovery_points().run()
        cut = log.trimming.take_cut(offset, now_ms=1000)
        cut.run()
        log.trimming.on_cut(cut)
        self.on_shortened()


def cut_power(machine: Machine) -> None:
    machine.process.die("power")
    machine.platters.lose_power()


def live(machine: Machine) -> None:
    """Start, work, and end by a power cut or in order."""
    machine.platters.cut_power_after(machine.rng.randrange(1, 400), lambda: cut_power(machine))
    machine.start_up()
    while machine.rng.random() < 0.99:
        machine.step()
        machine.check()
    if machine.rng.random() < 0.5:
        cut_power(machine)
        return
    close(machine.log)
    machine.directory.note(NAME, TOPIC_ID, machine.log)
    machine.directory.mark_clean()
    machine.process.die("stopped")


@pytest.mark.parametrize("first_seed", range(0, 100, 20))
def test_committed_state_can_always_be_loaded(first_seed: int) -> None:
    held_up_count = 0
    for seed in range(first_seed, first_seed + 20):
        machine = Machine(seed)
        for _ in range(8):
            try:
                live(machine)
            except PowerCut:
                pass
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, life {machine.life}") from error
        held_up_count += machine.held_up_count
    assert held_up_count
