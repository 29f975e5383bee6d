"""Compaction against an oracle, on a disk that loses power: whatever is done to a log, what is left may be left.

Each seed is one history: writes, passes of compaction with writes and reads between their steps, deletions, restarts,
and power cuts in the middle of anything, recoveries included.
"""

import random

import pytest

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from ropewalk.log.compaction import Compaction
from ropewalk.log.directory import DataDirectory
from ropewalk.log.latest import LatestOffsets
from ropewalk.log.log import Log, Span
from ropewalk.log.storage import Storage
from ropewalk.records.batch import BatchHeader, decode_header
from ropewalk.records.codec import Codec
from ropewalk.records.record import decode_records
from ropewalk.records.sieve import Entry
from ropewalk.sim.machines.disk import SimulatedDisk
from ropewalk.sim.machines.loop import SimulatedLoop
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.process import PowerCut, Process
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace
from tests.log.given import TOPIC_ID, Producer, append, batches_in, close, settings, sync
from tests.log.keyed import KeyValue, Oracle, keyed, records_of

RETENTION_MS = 1000
SETTINGS = settings(
    segment_bytes=900,
    index_interval_bytes=200,
    snapshot_interval_bytes=1500,
    compacts=True,
    delete_retention_ms=RETENTION_MS,
    min_cleanable_dirty_ratio=0.2,
)
NAME = TopicPartition("orders", 0)
KEYS = [b"a", b"b", b"c", b"d", b"e"]


class Machine:
    """One compacted partition on a disk that can lose power, and what must be true of it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.platters = Platters(self.rng, Trace(), Sometimes(), can_sync_everything=False)
        self.platters.is_waiting_allowed = True
        self.oracle = Oracle(delete_retention_ms=RETENTION_MS)
        self.life = 0
        self.now_ms = 10_000
        self.durable = 0
        self.limit = 0
        self.epoch = 0
        self.epoch_ends: dict[int, int] = {}
        self.sent: list[list[tuple[bytes, BatchHeader]]] = [[], []]
        self.recent: list[list[tuple[bytes, BatchHeader]]] = [[], []]
        """What either producer may still send again."""

        self.pass_count = 0
        self.process = Process("host", 0)
        self.log: Log
        self.directory: DataDirectory

    def open(self) -> None:
        """A power cut may come in between."""
        self.life += 1
        self.process = Process("host", self.life)
        loop: SimulatedLoop = None  # type: ignore[assignment]  # it is told of faults that do not happen here
        storage = Storage(SimulatedDisk(self.platters, self.process, loop), files_max=3, index_bytes_max=400)
        self.directory = DataDirectory.open(storage, "/data", node_id=NodeId(0), rng=self.rng)
        self.directory.create_partition(NAME, TOPIC_ID)
        self.log = self.directory.open_log(
            NAME, TOPIC_ID, SETTINGS, now_ms=self.now_ms, leader_epoch_max=LeaderEpoch(self.epoch)
        )

    def start_up(self) -> None:
        self.open()
        log = self.log
        assert log.end_offset >= self.durable, "what was synced is gone"
        assert log.damaged == ()
        self.oracle.cut(log.end_offset)
        for which in range(2):
            self.sent[which] = [one for one in self.sent[which] if one[1].end_offset <= log.end_offset]
            # Without a snapshot nobody knows what was in segments that are deleted.
            self.recent[which] = [
                one
                for one in self.recent[which]
                if log.start_offset <= one[1].base_offset and one[1].end_offset <= log.end_offset
            ]
        self.epoch_ends = {epoch: min(end, log.end_offset) for epoch, end in self.epoch_ends.items()}
        sync(log)
        self.durable = log.durable_offset
        self.check()

    def check(self) -> None:
        log = self.log
        found = records_of(log, bytes_max=self.rng.choice([1, 500, 1 << 20]))
        self.oracle.check([r for r in found if r.offset >= log.start_offset], start=log.start_offset)
        for epoch, end_offset in self.epoch_ends.items():
            if end_offset > log.start_offset and epoch in self._epochs_left():
                end = log.end_offset_for_epoch(LeaderEpoch(epoch))
                assert end is not None
                assert (end.leader_epoch, end.end_offset) == (epoch, end_offset)

    def _epochs_left(self) -> set[int]:
        """The epochs that wrote something that was neither deleted nor lost."""
        ends = sorted(self.epoch_ends.items())
        return {
            epoch for (epoch, end), (_, before) in zip(ends, [(0, 0), *ends], strict=False) if end > before
        }

    def step(self) -> None:
        rng, log = self.rng, self.log
        match rng.randrange(32):
            case 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8:
                codec = rng.choice(list(Codec)) if rng.random() < 0.3 else Codec.NONE
                self.write(keyed(self.pairs(), timestamp=self.now_ms, codec=codec))
            case 9 | 10 | 11 | 12:
                self.write_as_producer(rng.randrange(2))
            case 13:
                self.retry(rng.randrange(2))
            case 14:
                self.epoch += rng.random() < 0.5
            case 15 | 16:
                self.now_ms += rng.randrange(2 * RETENTION_MS)
            case 17 | 18 | 19:
                self.sync()
            case 20 | 21:
                self.directory.note(NAME, TOPIC_ID, log)
                self.directory.take_recovery_points().run()
            case 22:
                self.snapshot(force=False)
            case 23:
                self.platters.evict(share=0.5)
            case 24:
                scrub = log.maintenance.take_scrub(300)
                if scrub is not None:
                    scrub.run()
                    log.maintenance.on_scrubbed(scrub)
                    assert scrub.damaged == []
            case 25:
                self.look_up_times()
            case 26:
                self.read_from_anywhere()
            case 27:
                if rng.random() < 0.2:
                    self.delete_records()
            case 28 | 29 | 30 | 31:
                self.compact()

    def pairs(self) -> list[KeyValue]:
        rng = self.rng
        return [
            (rng.choice(KEYS), None if rng.random() < 0.3 else rng.randbytes(rng.choice([3, 30, 90])))
            for _ in range(rng.randrange(1, 4))
        ]

    def write(self, made: memoryview) -> BatchHeader:
        appended = append(self.log, made, epoch=self.epoch)
        assert not appended.duplicate
        self.oracle.note(made)
        self.epoch_ends[self.epoch] = appended.end_offset
        return decode_header(made)

    def write_as_producer(self, which: int) -> None:
        sequence = self.sent[which][-1][1].last_sequence + 1 if self.sent[which] else 0
        made = keyed(self.pairs(), producer=Producer(id=which, sequence=sequence))
        sent = bytes(made)
        header = self.write(made)
        self.sent[which].append((sent, header))
        self.recent[which] = [*self.recent[which], (sent, header)][-5:]

    def retry(self, which: int) -> None:
        if self.recent[which]:
            sent, header = self.rng.choice(self.recent[which])
            appended = append(self.log, memoryview(bytearray(sent)), epoch=self.epoch)
            assert (appended.base_offset, appended.duplicate) == (header.base_offset, True)

    def sync(self) -> None:
        sync(self.log)
        self.durable = self.log.durable_offset

    def snapshot(self, *, force: bool) -> None:
        write = self.log.maintenance.take_snapshot(self.now_ms, force=force)
        if write is not None:
            write.run()
            self.log.maintenance.on_snapshot(write)

    def look_up_times(self) -> None:
        log = self.log
        left = [record for record in records_of(log) if record.offset >= log.start_offset]
        timestamp = self.rng.randrange(9_990, self.now_ms + 5)
        found = log.offset_for_timestamp(timestamp, limit_offset=log.end_offset)
        expected = next((record.offset for record in left if record.timestamp >= timestamp), None)
        assert (None if found is None else found.offset) == expected

    def read_from_anywhere(self) -> None:
        log, rng = self.log, self.rng
        start = rng.randrange(log.start_offset, log.end_offset + 1)
        found = records_of(log, start=start, bytes_max=rng.choice([1, 300, 1 << 20]))
        whole = records_of(log)
        assert [r for r in found if r.offset >= start] == [r for r in whole if r.offset >= start]

    def delete_records(self) -> None:
        log, directory = self.log, self.directory
        start = self.rng.randrange(log.start_offset, self.durable + 1)
        log.trimming.plan_start(Offset(start), limit_offset=log.durable_offset)
        directory.note(NAME, TOPIC_ID, log)
        directory.take_log_starts().run()
        removal = log.trimming.take_removal(start_offset_durable=log.trimming.planned_start_offset)
        if removal is not None:
            removal.run()

    def compact(self) -> None:
        log, rng = self.log, self.rng
        share = 1.0 if rng.random() < 0.7 else rng.random()
        limit = self.limit = max(self.limit, int(self.durable * share))  # as high watermarks, it never falls
        keys_max = rng.choice([2, 4, 1000])
        compaction = log.maintenance.take_compaction(
            limit_offset=Offset(limit), now_ms=self.now_ms, keys_max=keys_max
        )
        if compaction is None:
            return
        self.oracle.before_pass(limit, self.now_ms)
        if rng.random() < 0.7:
            self.snapshot(force=True)
        held = self.hold()
        started_at_ms, bytes_max = self.now_ms, rng.choice([1, 2000, 1 << 30])
        while not compaction.is_over:
            compaction.run(bytes_max)
            self.meanwhile()
            replacement = compaction.replacement
            if replacement is None:
                continue
            if not log.maintenance.install(replacement):
                compaction.abandon()
                break
            compaction.replacement = None
            self.meanwhile()
            replacement.run()
            self.meanwhile()
            log.maintenance.on_installed(replacement)
        log.maintenance.on_compacted(compaction)
        if compaction.is_complete:
            self.pass_count += 1
            self.oracle.after_pass(compaction.compacted_offset, started_at_ms)
        assert compaction.damaged is None
        self.let_go(held)
        self.check()

    def meanwhile(self) -> None:
        """What the event loop does between two steps."""
        fate = self.rng.random()
        if fate < 0.05:
            self.write(keyed(self.pairs(), timestamp=self.now_ms))
        elif fate < 0.08:
            self.check()
        elif fate < 0.1:
            self.sync()
        elif fate < 0.105:
            self.delete_records()

    def hold(self) -> list[tuple[int, Span]]:
        """Readers that have found their place and not read yet."""
        log, held = self.log, []
        for _ in range(3):
            offset = self.rng.randrange(log.start_offset, log.end_offset + 1)
            span = log.locate(Offset(offset), limit_offset=log.end_offset, bytes_max=300)
            if span is not None:
                held.append((offset, span))
        return held

    def let_go(self, held: list[tuple[int, Span]]) -> None:
        for offset, span in held:
            if offset < self.log.start_offset:
                continue
            data = span.read_cached()
            if data is None:
                data = span.read()
                self.log.on_read(span)
            batches = batches_in(bytes(data))
            assert decode_header(batches[0]).base_offset <= offset < decode_header(batches[0]).end_offset
            for one in batches:
                for record in decode_records(one):
                    assert record == self.oracle.written[record.offset]

    def cut_power(self) -> None:
        self.process.die("power")
        self.platters.lose_power()

    def live(self) -> None:
        """Start, work, and end by a power cut or in order."""
        rng = self.rng
        if rng.random() < 0.3:
            self.platters.cut_power_after(rng.randrange(25), self.cut_power)
        self.start_up()
        self.platters.cut_power_after(rng.randrange(1, 400), self.cut_power)
        while rng.random() < 0.985:
            self.step()
        self.sync()
        if rng.random() < 0.3:
            close(self.log, self.now_ms)
            self.directory.note(NAME, TOPIC_ID, self.log)
            self.directory.mark_clean()
            self.process.die("stopped")
            if rng.random() < 0.5:
                self.platters.lose_power()
        else:
            if rng.random() < 0.3:
                self.lose_snapshots()
            self.cut_power()

    def lose_snapshots(self) -> None:
        for path, _ in self.platters.files():
            if path.endswith(".snapshot"):
                self.platters.remove(path)


def live_through(seed: int) -> Machine:
    machine = Machine(seed)
    for _ in range(5):
        try:
            machine.live()
        except PowerCut:
            pass
        except (AssertionError, RopewalkError, OSError) as error:
            raise AssertionError(f"seed {seed}, life {machine.life}") from error
    machine.platters.cut_power_after(1 << 30, machine.cut_power)
    machine.start_up()
    return machine


def live_through_many(seeds: range) -> int:
    return sum(live_through(seed).pass_count for seed in seeds)


@pytest.mark.parametrize("first_seed", range(0, 100, 20))
def test_what_compaction_leaves_is_what_may_be_left_through_every_power_cut(first_seed: int) -> None:
    pass_count = live_through_many(range(first_seed, first_seed + 20))
    assert pass_count > 50, "hardly anything was compacted"


class QuietMachine(Machine):
    """Nothing happens beside a pass, so that every run of it is the same."""

    def meanwhile(self) -> None:
        pass


def a_machine_to_compact(seed: int) -> Machine:
    """Several closed segments, among them some of a pass before, all durable."""
    machine = QuietMachine(seed)
    machine.start_up()
    for _ in range(2):
        for _ in range(25):
            machine.write(keyed(machine.pairs(), timestamp=machine.now_ms))
        machine.write_as_producer(0)
        machine.now_ms += RETENTION_MS
        machine.sync()
        machine.snapshot(force=False)
        if machine.pass_count == 0:
            machine.compact()
    return machine


@pytest.mark.parametrize("seed", range(4))
def test_the_power_may_fail_at_every_single_operation_of_a_pass(seed: int) -> None:
    operation_count = 0
    is_over = False
    while not is_over:
        machine = a_machine_to_compact(seed)
        before = {record.offset for record in records_of(machine.log)}
        machine.platters.cut_power_after(operation_count, machine.cut_power)
        try:
            machine.compact()
            is_over = True
            machine.cut_power()
        except PowerCut:
            pass
        machine.platters.heal()
        machine.start_up()  # which checks all that must be true
        assert {record.offset for record in records_of(machine.log)} <= before
        names = [path for path, _ in machine.platters.files() if path.endswith((".cleaned", ".swap"))]
        assert names == []
        machine.compact()
        machine.retry(0)
        operation_count += 1
    assert operation_count > 10


def _drop_a_last_value(self: LatestOffsets, key: bytes, offset: int) -> bool:
    return _HAS_LATER(self, key, offset - 1)  # the record itself counts as a later one


def _drop_live_tombstones(self: Compaction, entry: Entry, header: BatchHeader) -> bool:
    return not entry.is_tombstone and _STAYS(self, entry, header)


_HAS_LATER = LatestOffsets.has_later
_STAYS = Compaction._stays


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        pytest.param(LatestOffsets, "has_later", _drop_a_last_value, id="the last value of a key is dropped"),
        pytest.param(Compaction, "_stays", _drop_live_tombstones, id="a live tombstone is dropped"),
    ],
)
def test_the_histories_tell_a_compaction_that_drops_too_much(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, mutant: object
) -> None:
    monkeypatch.setattr(owner, name, mutant)
    with pytest.raises(AssertionError):
        live_through_many(range(20))
