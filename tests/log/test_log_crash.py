"""Power cuts: whatever was synced is there, whatever else is there was written, and never anything else.

The disk is the simulator's: it loses and tears what was not synced, file by file and name by name. Each seed is
one history with several power cuts, some of them in the middle of a recovery.
"""

import random

import pytest

from ropewalk.base.errors import RopewalkError, StorageFailed
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from ropewalk.log.directory import DataDirectory
from ropewalk.log.log import Log
from ropewalk.log.storage import Storage
from ropewalk.records.batch import decode_header
from ropewalk.sim.machines.disk import SimulatedDisk
from ropewalk.sim.machines.loop import SimulatedLoop
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.process import PowerCut, Process
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace
from tests.log.given import TOPIC_ID, Producer, append, batch, batches_in, close, fetch, settings, sync

SETTINGS = settings(segment_bytes=3000, index_interval_bytes=300, snapshot_interval_bytes=1500)
NAME = TopicPartition("orders", 0)


class Machine:
    """One partition on a disk that can lose power, and what must be true of it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.platters = Platters(self.rng, Trace(), Sometimes(), can_sync_everything=False)
        self.platters.is_waiting_allowed = True
        self.life = 0
        self.written: list[bytes] = []
        """Every batch of the history that goes on, by its offset; those above `durable` may go."""

        self.durable = 0
        self.start = 0
        self.start_asked = 0
        self.sequence = 0
        self.rotten: set[int] = set()
        self.process = Process("host", 0)
        self.directory: DataDirectory | None = None
        self.log: Log | None = None

    def start_up(self) -> None:
        """Open everything; a power cut may come in between."""
        self.life += 1
        self.process = Process("host", self.life)
        loop: SimulatedLoop = None  # type: ignore[assignment]  # it is told of faults that do not happen here
        storage = Storage(SimulatedDisk(self.platters, self.process, loop), files_max=3, index_bytes_max=400)
        self.directory = DataDirectory.open(storage, "/data", node_id=NodeId(0), rng=self.rng)
        self.directory.create_partition(NAME, TOPIC_ID)
        self.log = self.directory.open_log(
            NAME, TOPIC_ID, SETTINGS, now_ms=1000, leader_epoch_max=LeaderEpoch(0)
        )
        self.check_recovered(self.log)

    def check_recovered(self, log: Log) -> None:
        assert log.end_offset >= self.durable, "what was synced is gone"
        assert self.start <= log.start_offset <= max(self.start, self.start_asked)
        self.start = self.start_asked = log.start_offset
        self.written = [one for one in self.written if decode_header(one).end_offset <= log.end_offset]
        assert log.end_offset == (decode_header(self.written[-1]).end_offset if self.written else 0)
        self.sequence = log.end_offset
        sync(log)
        self.durable = log.durable_offset
        self.check_contents(log)

    def check_contents(self, log: Log) -> None:
        for one in self.written:
            header = decode_header(one)
            if header.base_offset < self.start:
                continue
            try:
                found = batches_in(fetch(log, header.base_offset, bytes_max=1))
            except StorageFailed:
                assert header.base_offset in self.rotten, f"offset {header.base_offset} is refused"
            else:
                assert found == [one]

    def step(self) -> None:
        assert self.log is not None
        assert self.directory is not None
        log, directory, rng = self.log, self.directory, self.rng
        match rng.randrange(12):
            case 0 | 1 | 2 | 3 | 4 | 5:
                values = [rng.randbytes(rng.randrange(1, 300)) for _ in range(rng.randrange(1, 4))]
                made = batch(values, producer=Producer(sequence=self.sequence))
                appended = append(log, made)
                assert not appended.duplicate
                self.written.append(bytes(made))
                self.sequence += len(values)
            case 6 | 7:
                sync(log)
                self.durable = log.durable_offset
            case 8:
                directory.note(NAME, TOPIC_ID, log)
                directory.take_recovery_points().run()
            case 9:
                write = log.maintenance.take_snapshot(1000)
                if write is not None:
                    write.run()
                    log.maintenance.on_snapshot(write)
            case 10:
                self.platters.evict(share=0.5)
            case 11:
                self.start_asked = rng.randrange(self.start, self.durable + 1)
                log.trimming.plan_start(Offset(self.start_asked), limit_offset=log.durable_offset)
                directory.note(NAME, TOPIC_ID, log)
                directory.take_log_starts().run()
                self.start = self.start_asked
                removal = log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset)
                if removal is not None:
                    removal.run()

    def cut_power(self) -> None:
        self.process.die("power")
        self.platters.lose_power()

    def live(self) -> None:
        """Start, work, and end by a power cut or in order."""
        if self.rng.random() < 0.3:
            self.platters.cut_power_after(self.rng.randrange(25), self.cut_power)
        self.start_up()
        self.platters.cut_power_after(self.rng.randrange(1, 160), self.cut_power)
        while self.rng.random() < 0.97:
            self.step()
        if self.rng.random() < 0.3:
            assert self.log is not None
            assert self.directory is not None
            close(self.log)
            self.durable = self.log.durable_offset
            self.directory.note(NAME, TOPIC_ID, self.log)
            self.directory.mark_clean()
            self.process.die("stopped")
            if self.rng.random() < 0.5:
                self.platters.lose_power()
        else:
            self.cut_power()


def live_through(machine: Machine, seed: int) -> None:
    for _ in range(6):
        try:
            machine.live()
        except PowerCut:
            pass
        except (AssertionError, RopewalkError, OSError) as error:
            raise AssertionError(f"seed {seed}, life {machine.life}") from error
    machine.platters.cut_power_after(1 << 30, machine.cut_power)
    machine.start_up()


@pytest.mark.parametrize("first_seed", range(0, 200, 20))
def test_what_was_synced_survives_every_power_cut(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 20):
        live_through(Machine(seed), seed)


class RottingMachine(Machine):
    """Bits flip on the platter; the recovery point follows every sync, so nothing durable may be cut for it."""

    def step(self) -> None:
        assert self.log is not None
        assert self.directory is not None
        if self.rng.random() < 0.15:
            self.rot()
        if self.rng.random() < 0.2:
            self.check_contents(self.log)
        if self.rng.random() < 0.1:
            self.scrub(self.log)
        before = self.durable
        super().step()
        if self.durable != before:
            self.checkpoint()

    def checkpoint(self) -> None:
        assert self.log is not None
        assert self.directory is not None
        self.directory.note(NAME, TOPIC_ID, self.log)
        self.directory.take_recovery_points().run()

    def check_recovered(self, log: Log) -> None:
        super().check_recovered(log)
        self.checkpoint()

    def rot(self) -> None:
        files = [
            (path, file)
            for path, file in self.platters.files()
            if path.endswith((".log", ".index", ".snapshot")) and file.durable_bytes
        ]
        if not files:
            return
        path, file = self.rng.choice(files)
        position = self.rng.randrange(file.durable_bytes)
        if path.endswith(".log"):
            base_offset, at = int(path[-24:-4]), 0
            for one in self.written:
                header = decode_header(one)
                if header.base_offset >= base_offset:
                    if at <= position < at + len(one):
                        if header.end_offset > self.durable:
                            return  # what is not checkpointed yet may be cut
                        self.rotten.add(header.base_offset)
                        break
                    at += len(one)
            else:
                return
        file.rot(position, 1 << self.rng.randrange(8))
        if self.rng.random() < 0.7:
            self.platters.evict(share=self.rng.random())

    def scrub(self, log: Log) -> None:
        while (scrub := log.maintenance.take_scrub(700)) is not None:
            scrub.run()
            log.maintenance.on_scrubbed(scrub)
            if self.rng.random() < 0.2:
                return


@pytest.mark.parametrize("first_seed", range(0, 200, 20))
def test_rotten_bytes_are_refused_and_everything_else_is_served(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 20):
        live_through(RottingMachine(seed), seed)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(5602, id="an offset rotted into the recovery point's, behind another rotten batch"),
        pytest.param(6665, id="a huge offset behind a rotten batch"),
        pytest.param(5423, id="two batches with rotten counts"),
        pytest.param(6492, id="a rotten offset, one batch and a torn tail"),
        pytest.param(6917, id="a rotten format mark before what was not checkpointed"),
    ],
)
def test_only_what_something_vouches_for_is_believed_behind_damage(seed: int) -> None:
    live_through(RottingMachine(seed), seed)
