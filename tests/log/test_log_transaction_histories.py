"""Transactions against an oracle, on a disk that loses power: whatever is done to a log, committed readers get what they should.

Each seed is one history: transactions of a few producers, plain writes, snapshots, deletions, cuts, compaction with reads
between its steps, restarts, and power cuts in the middle of anything, recoveries included. The reader is a client as Kafka's
is: it is given batches and a list of aborted transactions, and leaves out what they wrote.
"""

import random
from collections import deque

import pytest
from msgspec import Struct

from ropewalk.base.errors import ProducerFenced
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, ProducerEpoch, ProducerId, TopicPartition
from ropewalk.base.ports import Disk
from ropewalk.log import aborted
from ropewalk.log.aborted import AbortedTransaction
from ropewalk.log.compaction import Compaction
from ropewalk.log.directory import DataDirectory
from ropewalk.log.log import Log
from ropewalk.log.rewrite import Replacement
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage
from ropewalk.records.batch import decode_header
from ropewalk.records.marker import TransactionMarker, read_marker
from ropewalk.records.record import Record, build, decode_records
from ropewalk.sim.machines.disk import SimulatedDisk
from ropewalk.sim.machines.loop import SimulatedLoop
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.process import PowerCut, Process
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace
from tests.log.given import TOPIC_ID, batches_in, close, settings, sync

NAME = TopicPartition("orders", 0)
PLAIN = -1
PRODUCERS = (1, 2, 3)
KEYS = [b"a", b"b", b"c", b"d"]


class Event(Struct, frozen=True):
    """One batch, as it was appended."""

    base_offset: int
    end_offset: int
    producer: int
    keys: list[bytes]
    """Empty for a marker."""

    committed: bool = False

    @property
    def is_marker(self) -> bool:
        return not self.keys


class History:
    """The plain truth: all batches, in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def cut(self, end_offset: int) -> None:
        self.events = [event for event in self.events if event.end_offset <= end_offset]

    @property
    def end_offset(self) -> int:
        return self.events[-1].end_offset if self.events else 0

    def since_marker(self, producer: int) -> list[Event]:
        """What a producer has written since its last marker."""
        written: list[Event] = []
        for event in self.events:
            if event.producer == producer:
                written = [] if event.is_marker else [*written, event]
        return written

    def epoch(self, producer: int) -> int:
        """Every transaction has its own, and its marker the next."""
        return sum(event.producer == producer and event.is_marker for event in self.events)

    def last_marker_offset(self, producer: int) -> int:
        return max(
            event.base_offset for event in self.events if event.producer == producer and event.is_marker
        )

    def transactions(self) -> list[tuple[int, int, Event | None]]:
        """Producer, first offset and marker of each."""
        began: dict[int, int] = {}
        found: list[tuple[int, int, Event | None]] = []
        for event in self.events:
            if event.producer == PLAIN:
                continue
            if not event.is_marker:
                began.setdefault(event.producer, event.base_offset)
            elif event.producer in began:
                found.append((event.producer, began.pop(event.producer), event))
        return found + [(producer, first, None) for producer, first in began.items()]

    def stable_offset(self, high_watermark: int) -> int:
        undecided = [
            first
            for _, first, marker in self.transactions()
            if marker is None or marker.base_offset >= high_watermark
        ]
        return min([high_watermark, *undecided])

    def counting(self, end_offset: int) -> dict[int, bytes]:
        """Offset and key of every record below that nobody has taken back."""
        aborted_ranges = [
            (producer, first, marker.base_offset)
            for producer, first, marker in self.transactions()
            if marker is not None and not marker.committed
        ]
        return {
            event.base_offset + at: key
            for event in self.events
            if event.end_offset <= end_offset
            and not any(
                producer == event.producer and first <= event.base_offset < last
                for producer, first, last in aborted_ranges
            )
            for at, key in enumerate(event.keys)
        }


class Machine:
    def __init__(self, seed: int, *, compacts: bool) -> None:
        self.rng = random.Random(seed)
        self.platters = Platters(self.rng, Trace(), Sometimes(), can_sync_everything=False)
        self.platters.is_waiting_allowed = True
        self.settings: LogSettings = settings(
            segment_bytes=900,
            index_interval_bytes=200,
            snapshot_interval_bytes=1500,
            compacts=compacts,
            delete_retention_ms=self.rng.choice([0, 1000]),
            min_cleanable_dirty_ratio=0.1,
        )
        self.history = History()
        self.now_ms = 10_000
        self.durable = 0
        self.high_watermark = 0
        self.start = 0
        self.start_when_read = 0
        """Where the log began when it was last read from disk: nothing else makes it forget anybody."""
        self.life = 0
        self.process = Process("host", 0)
        self.log: Log
        self.directory: DataDirectory
        self.compaction: Compaction | None = None
        self.installed: Replacement | None = None
        self.read_count = self.left_out_count = 0

    def open(self) -> None:
        """A power cut may come in between."""
        self.life += 1
        self.process = Process("host", self.life)
        self.compaction = self.installed = None
        loop: SimulatedLoop = None  # type: ignore[assignment]  # it is told of faults that do not happen here
        storage = Storage(SimulatedDisk(self.platters, self.process, loop), files_max=3, index_bytes_max=400)
        self.directory = DataDirectory.open(storage, "/data", node_id=NodeId(0), rng=self.rng)
        self.directory.create_partition(NAME, TOPIC_ID)
        if self.rng.random() < 0.3:
            self.lose_snapshots(storage.disk)
        self.log = self.directory.open_log(
            NAME, TOPIC_ID, self.settings, now_ms=self.now_ms, leader_epoch_max=LeaderEpoch(0)
        )
        assert self.log.end_offset >= self.durable
        self.history.cut(self.log.end_offset)
        assert self.history.end_offset == self.log.end_offset
        sync(self.log)
        self.durable = self.log.durable_offset
        self.start = self.start_when_read = self.log.start_offset
        self.check()

    def lose_snapshots(self, disk: Disk) -> None:
        """They are only a shortcut: without them all is read again."""
        directory = f"/data/{NAME}"
        for name in disk.list(directory):
            if name.endswith(".snapshot"):
                disk.remove(f"{directory}/{name}")
        disk.sync_directory(directory)

    # What must be true

    def check(self) -> None:
        log, history = self.log, self.history
        assert [(each.producer_id, each.first_offset) for each in log.producers.open_transactions()] == [
            (producer, first) for producer, first, marker in history.transactions() if marker is None
        ]
        for high_watermark in (self.high_watermark, self.durable):
            assert log.stable_offset(Offset(high_watermark)) == history.stable_offset(high_watermark)
        self.high_watermark = self.durable
        self.read(self.start)
        self.read(self.rng.randrange(self.start, log.stable_offset(log.durable_offset) + 1))

    def read(self, offset: int) -> None:
        """As a consumer does, up to the last stable offset."""
        log = self.log
        stable_offset = log.stable_offset(Offset(self.high_watermark))
        counting = self.history.counting(stable_offset)
        seen: list[Record] = []
        began_at = offset
        while offset < stable_offset:
            span = log.locate(
                Offset(offset), limit_offset=stable_offset, bytes_max=self.rng.choice([1, 300, 3000])
            )
            assert span is not None
            lookup = log.aborted_in(Offset(offset), stable_offset)
            data = span.read_cached()
            if data is None:
                data = span.read()
                log.on_read(span)
            batches = batches_in(bytes(data))
            end_offset = decode_header(batches[-1]).end_offset
            physical, shown = _as_a_client(batches, lookup.narrowed(end_offset).run())
            assert {record.offset for record in shown} == {
                record.offset for record in physical if record.offset in counting
            }
            self.left_out_count += len(physical) - len(shown)
            seen += [record for record in shown if record.offset >= offset]
            offset = end_offset
        self.read_count += len(seen)
        expected = {at: key for at, key in counting.items() if at >= began_at}
        if self.settings.compacts:
            expected = {at: key for key, at in {key: at for at, key in sorted(expected.items())}.items()}
        missing = expected.keys() - {record.offset for record in seen}
        assert not missing, f"offsets {sorted(missing)} are gone"

    # What may happen

    def step(self) -> None:
        rng, log = self.rng, self.log
        self.now_ms += rng.randrange(300)
        match rng.randrange(18):
            case 0 | 1 | 2 | 3:
                self.write(rng.choice(PRODUCERS))
            case 4 | 5 | 6:
                self.end(rng.choice(PRODUCERS))
            case 7:
                self.write(PLAIN)
            case 8:
                sync(log)
                self.durable = log.durable_offset
            case 9:
                self.directory.note(NAME, TOPIC_ID, log)
                self.directory.take_recovery_points().run()
            case 10:
                write = log.maintenance.take_snapshot(self.now_ms, force=rng.random() < 0.3)
                if write is not None:
                    write.run()
                    log.maintenance.on_snapshot(write)
            case 11:
                if self.compaction is None and rng.random() < 0.2:
                    self.delete()
                elif self.compaction is None and rng.random() < 0.2:
                    self.cut()
            case _:
                self.compact()
        if rng.random() < 0.2:
            self.check()

    def write(self, producer: int) -> None:
        keys = [self.rng.choice(KEYS) for _ in range(self.rng.randrange(1, 4))]
        before = self.history.since_marker(producer) if producer != PLAIN else []
        made = memoryview(
            build(
                [Record(timestamp=self.now_ms, key=key, value=b"v" * self.rng.randrange(60)) for key in keys],
                producer_id=ProducerId(producer),
                producer_epoch=ProducerEpoch(-1 if producer == PLAIN else self.history.epoch(producer)),
                base_sequence=-1 if producer == PLAIN else sum(len(event.keys) for event in before),
                is_transactional=producer != PLAIN,
            )
        )
        appended = self.log.append(made, decode_header(made), leader_epoch=LeaderEpoch(0), now_ms=self.now_ms)
        assert not appended.duplicate
        self.history.events.append(Event(appended.base_offset, appended.end_offset, producer, keys))

    def end(self, producer: int) -> None:
        epoch, committed = self.history.epoch(producer), self.rng.random() < 0.5
        if self.history.since_marker(producer):
            with pytest.raises(ProducerFenced):
                self.mark(producer, epoch, committed)
        elif not epoch:
            return
        elif self.log.producers.knows(producer):
            assert self.mark(producer, epoch, committed) is None, "a marker was written twice"
            return
        else:
            # Of a producer that has nothing left in the log only snapshots tell, which may be lost; its next marker is taken.
            assert self.history.last_marker_offset(producer) < self.start_when_read, "a producer is forgotten"
        offset = self.mark(producer, epoch + 1, committed)
        assert offset is not None
        self.history.events.append(Event(offset, offset + 1, producer, [], committed))

    def mark(self, producer: int, epoch: int, committed: bool) -> int | None:
        marker = TransactionMarker(ProducerId(producer), ProducerEpoch(epoch), committed, 0, 2)
        appended = self.log.append_marker(marker, leader_epoch=LeaderEpoch(0), now_ms=self.now_ms)
        return None if appended is None else appended.base_offset

    def delete(self) -> None:
        stable_offset = self.log.stable_offset(self.log.durable_offset)
        self.high_watermark = self.log.durable_offset
        offset = self.rng.randrange(self.start, stable_offset + 1)
        if any(
            first < offset and (marker is None or marker.base_offset >= offset)
            for _, first, marker in self.history.transactions()
        ):
            return  # what is known of a transaction that lost its beginning depends on how the log was opened
        self.log.trimming.plan_start(Offset(offset), limit_offset=stable_offset)
        self.directory.note(NAME, TOPIC_ID, self.log)
        self.directory.take_log_starts().run()
        removal = self.log.trimming.take_removal(start_offset_durable=self.log.trimming.planned_start_offset)
        self.start = self.log.start_offset
        if removal is not None:
            removal.run()

    def cut(self) -> None:
        """As a follower whose leader has another history above the high watermark."""
        offset = self.rng.randrange(self.high_watermark, self.log.end_offset + 1)
        offset = self.log.trimming.boundary_at(Offset(offset)) if offset < self.log.end_offset else offset
        offset = max(offset, self.start)
        self.log.trimming.plan_cut(Offset(offset))
        self.directory.note(NAME, TOPIC_ID, self.log)
        self.durable = min(self.durable, offset)
        self.directory.take_recovery_points().run()
        cut = self.log.trimming.take_cut(Offset(offset), now_ms=self.now_ms)
        cut.run()
        self.log.trimming.on_cut(cut)
        self.history.cut(offset)
        self.start_when_read = self.start

    def compact(self) -> None:
        """One step of a pass; another step may find it between two of them."""
        log = self.log
        if self.installed is not None:
            self.installed.run()
            log.maintenance.on_installed(self.installed)
            self.installed = None
            return
        if self.compaction is None:
            self.high_watermark = log.durable_offset
            self.compaction = log.maintenance.take_compaction(
                limit_offset=log.stable_offset(log.durable_offset),
                now_ms=self.now_ms,
                keys_max=self.rng.choice([2, 100]),
            )
            if self.compaction is None:
                return
        compaction = self.compaction
        compaction.run(self.rng.choice([200, 5000]))
        if compaction.replacement is not None:
            if log.maintenance.install(compaction.replacement):
                self.installed, compaction.replacement = compaction.replacement, None
            else:
                compaction.abandon()
        elif self.rng.random() < 0.05:
            compaction.abandon()
        if compaction.is_over:
            assert not compaction.trouble
            log.maintenance.on_compacted(compaction)
            self.compaction = None

    def cut_power(self) -> None:
        self.process.die("power")
        self.platters.lose_power()

    def live(self) -> None:
        """Start, work, and end by a power cut or in order."""
        if self.rng.random() < 0.3:
            self.platters.cut_power_after(self.rng.randrange(25), self.cut_power)
        self.open()
        self.platters.cut_power_after(self.rng.randrange(1, 500), self.cut_power)
        while self.rng.random() < 0.99:
            self.step()
        if self.compaction is None and self.rng.random() < 0.4:
            close(self.log, self.now_ms)
            self.durable = self.log.durable_offset
            self.directory.note(NAME, TOPIC_ID, self.log)
            self.directory.mark_clean()
            self.process.die("stopped")
        else:
            self.cut_power()


def _as_a_client(
    batches: list[bytes], told: tuple[AbortedTransaction, ...]
) -> tuple[list[Record], list[Record]]:
    """All records that were sent, and those that the application gets."""
    waiting = deque(sorted(told, key=lambda each: each.first_offset))
    aborting: set[int] = set()
    physical: list[Record] = []
    shown: list[Record] = []
    for one in batches:
        header = decode_header(one)
        while waiting and waiting[0].first_offset < header.end_offset:
            aborting.add(waiting.popleft().producer_id)
        if header.is_control:
            marker = read_marker(one)
            if marker is not None and not marker.committed:
                aborting.discard(header.producer_id)
            continue
        records = decode_records(one)
        physical += records
        if not (header.is_transactional and header.producer_id in aborting):
            shown += records
    return physical, shown


@pytest.mark.parametrize("compacts", [False, True])
@pytest.mark.parametrize("first_seed", range(0, 40, 10))
def test_committed_readers_get_what_they_should(
    first_seed: int, compacts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aborted, "ABORTED_CHUNK_COUNT", 2)
    read_count = left_out_count = 0
    for seed in range(first_seed, first_seed + 10):
        machine = Machine(seed, compacts=compacts)
        for _ in range(4):
            try:
                machine.live()
            except PowerCut:
                pass
            except BaseException as error:
                error.add_note(f"seed {seed}, compacts {compacts}")
                raise
        machine.platters.cut_power_after(1 << 30, machine.cut_power)
        machine.open()
        read_count += machine.read_count
        left_out_count += machine.left_out_count
    assert read_count > 1000
    assert left_out_count > 20
