"""Bits that rot under compaction: what is served was written, what is refused has rotted, and no last value is lost for it."""

import pytest

from ropewalk.base.errors import CorruptBatch, RopewalkError, StorageFailed, UnsupportedFormat
from ropewalk.records.batch import BatchHeader, decode_header, iterate
from ropewalk.records.record import decode_records
from ropewalk.sim.machines.process import PowerCut
from tests.log.given import TOPIC_ID, batches_in, fetch, sync
from tests.log.keyed import keyed
from tests.log.test_log_compaction_histories import NAME, RETENTION_MS, Machine


class RottingMachine(Machine):
    """The recovery point follows every sync, so nothing durable may be cut for what rots."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rotten: set[int] = set()
        self.refused_count = 0

    def start_up(self) -> None:
        self.open()
        assert self.log.end_offset >= self.durable, "what was synced is gone"
        self.oracle.cut(self.log.end_offset)
        self.sync()
        self.check()

    def sync(self) -> None:
        sync(self.log)
        self.directory.note(NAME, TOPIC_ID, self.log)
        self.directory.take_recovery_points().run()
        self.durable = self.log.durable_offset

    def check(self) -> None:
        log = self.log
        offset, left = 0, set()
        while offset < log.end_offset:
            try:
                (batch,) = batches_in(fetch(log, offset, bytes_max=1))
            except StorageFailed:
                assert offset in self.rotten, f"offset {offset} is refused"
                self.refused_count += 1
                left.add(offset)
                offset += 1
                continue
            offset = decode_header(batch).end_offset
            for record in decode_records(batch):
                assert record == self.oracle.written[record.offset]
                left.add(record.offset)
        for offset, record in self.oracle.last().items():
            assert offset in left or record.value is None, f"the last value of {record.key!r} is gone"

    def step(self) -> None:
        rng = self.rng
        match rng.randrange(12):
            case 0 | 1 | 2 | 3 | 4:
                self.write(keyed(self.pairs(), timestamp=self.now_ms))
            case 5:
                self.now_ms += rng.randrange(2 * RETENTION_MS)
            case 6 | 7:
                self.sync()
            case 8:
                self.platters.evict(share=rng.random())
            case 9:
                if rng.random() < 0.3:
                    self.rot()
            case 10:
                scrub = self.log.maintenance.take_scrub(300)
                if scrub is not None:
                    scrub.run()
                    self.log.maintenance.on_scrubbed(scrub)
            case 11:
                self.compact()

    def compact(self) -> None:
        """As a broker does it; a pass that meets damage ends there."""
        compaction = self.log.maintenance.take_compaction(
            limit_offset=self.log.durable_offset, now_ms=self.now_ms
        )
        while compaction is not None and not compaction.is_over:
            compaction.run(self.rng.choice([1, 1000, 1 << 30]))
            if self.rng.random() < 0.1:
                self.rot()
            replacement = compaction.replacement
            if replacement is not None:
                if not self.log.maintenance.install(replacement):
                    compaction.abandon()
                    break
                compaction.replacement = None
                replacement.run()
                self.log.maintenance.on_installed(replacement)
        if compaction is not None:
            self.log.maintenance.on_compacted(compaction)
            self.pass_count += compaction.is_complete
            self.check()

    def rot(self) -> None:
        """Flip one bit of a batch that is durable."""
        files = [file for path, file in self.platters.files() if path.endswith(".log") and file.durable_bytes]
        if not files:
            return
        file = self.rng.choice(files)
        position = self.rng.randrange(file.durable_bytes)
        for start, header in _batches(bytes(file.data)):
            if start <= position < start + header.size_bytes and header.end_offset <= self.durable:
                self.rotten.update(range(header.base_offset, header.end_offset))
                file.rot(position, 1 << self.rng.randrange(8))
                return


def _batches(data: bytes) -> list[tuple[int, BatchHeader]]:
    """None where a header has rotted already."""
    try:
        return list(iterate(data))
    except (CorruptBatch, UnsupportedFormat):
        return []


def live_through(seed: int) -> RottingMachine:
    machine = RottingMachine(seed)
    for _ in range(4):
        try:
            machine.start_up()
            machine.platters.cut_power_after(machine.rng.randrange(1, 400), machine.cut_power)
            while machine.rng.random() < 0.99:
                machine.step()
            machine.cut_power()
        except PowerCut:
            pass
        except (AssertionError, RopewalkError, OSError) as error:
            raise AssertionError(f"seed {seed}, life {machine.life}") from error
    return machine


@pytest.mark.parametrize("first_seed", range(0, 80, 20))
def test_compaction_neither_launders_nor_spreads_what_has_rotted(first_seed: int) -> None:
    machines = [live_through(seed) for seed in range(first_seed, first_seed + 20)]
    assert sum(machine.pass_count for machine in machines) > 20
    assert sum(machine.refused_count for machine in machines) > 20
