"""What the tests of compaction start from: batches with keys, a whole pass, and an oracle that knows what may go."""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.ids import NO_PRODUCER, Offset, ProducerEpoch, ProducerId
from ropewalk.log.compaction import Compaction
from ropewalk.log.log import Log
from ropewalk.records.batch import decode_header
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build, decode_records
from tests.log.given import Producer, batches_in, fetch

KeyValue = tuple[bytes | None, bytes | None]


def keyed(
    pairs: Sequence[KeyValue],
    *,
    timestamp: int = 1000,
    codec: Codec = Codec.NONE,
    producer: Producer | None = None,
    is_transactional: bool = False,
    is_control: bool = False,
) -> memoryview:
    """One batch; each record a millisecond younger than the one before it."""
    records = [
        Record(timestamp=timestamp + index, key=key, value=value, headers=(("n", b"%d" % index),))
        for index, (key, value) in enumerate(pairs)
    ]
    return memoryview(
        build(
            records,
            codec=codec,
            producer_id=NO_PRODUCER if producer is None else ProducerId(producer.id),
            producer_epoch=ProducerEpoch(-1 if producer is None else producer.epoch),
            base_sequence=-1 if producer is None else producer.sequence,
            is_transactional=is_transactional,
            is_control=is_control,
        )
    )


def compact(
    log: Log, now_ms: int, *, limit: int | None = None, bytes_max: int = 1 << 30
) -> Compaction | None:
    """One pass, as a broker does it; None if none was due."""
    limit_offset = log.end_offset if limit is None else Offset(limit)
    compaction = log.maintenance.take_compaction(limit_offset=limit_offset, now_ms=now_ms)
    if compaction is None:
        return None
    while not compaction.is_over:
        compaction.run(bytes_max)
        replacement = compaction.replacement
        if replacement is None:
            continue
        if not log.maintenance.install(replacement):
            compaction.abandon()
            break
        compaction.replacement = None
        replacement.run()
        log.maintenance.on_installed(replacement)
    log.maintenance.on_compacted(compaction)
    return compaction


def records_of(log: Log, *, start: int | None = None, bytes_max: int = 1 << 20) -> list[Record]:
    """Everything a consumer gets; batches must follow one another without gaps, whatever compaction removed."""
    offset = int(log.start_offset) if start is None else start
    found: list[Record] = []
    expected: int | None = None
    while offset < log.end_offset:
        for one in batches_in(fetch(log, offset, bytes_max=bytes_max)):
            header = decode_header(one)
            assert expected is None or header.base_offset == expected
            expected = offset = header.end_offset
            found += decode_records(one)
    return found


class _Tombstone(Struct):
    may_go_at_ms: int
    """Not before: so long after the first pass that can have met it."""

    must_go_at_ms: int | None = None
    """The first whole pass from then on removes it."""


class Oracle:
    """Every record ever written, and what compaction may have done to it."""

    def __init__(self, *, delete_retention_ms: int) -> None:
        self.delete_retention_ms = delete_retention_ms
        self.written: dict[int, Record] = {}
        self.compacted_offset = 0
        """Below it a pass has been whole."""

        self.limit_offset = 0
        """Nothing may be missing from here on."""

        self._passed_at_ms = 0
        self._tombstones: dict[int, _Tombstone] = {}
        self._overdue: set[int] = set()

    def note(self, batch: bytes | memoryview) -> None:
        """The batch was written; it carries its offset."""
        for record in decode_records(batch):
            self.written[record.offset] = record

    def cut(self, end_offset: int) -> None:
        """The log lost what was not durable."""
        self.written = {offset: record for offset, record in self.written.items() if offset < end_offset}

    def before_pass(self, limit_offset: int, now_ms: int) -> None:
        self.limit_offset = max(self.limit_offset, limit_offset)
        self._passed_at_ms = now_ms
        for offset, record in self.written.items():
            if record.value is None and offset < limit_offset:
                self._tombstones.setdefault(offset, _Tombstone(now_ms + self.delete_retention_ms))

    def after_pass(self, compacted_offset: int, now_ms: int) -> None:
        """A pass came to its end."""
        self.compacted_offset = max(self.compacted_offset, compacted_offset)
        for offset, tombstone in self._tombstones.items():
            if offset >= compacted_offset:
                continue
            if tombstone.must_go_at_ms is None:
                tombstone.must_go_at_ms = now_ms + self.delete_retention_ms
            elif tombstone.must_go_at_ms <= now_ms:
                self._overdue.add(offset)

    def check(self, found: Sequence[Record], *, start: int = 0) -> None:
        """Whether `found`, which is all from `start` on, is what may be left."""
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets)), "records are out of order"
        for record in found:
            assert record == self.written[record.offset], "a record is not the one that was written there"
        left = set(offsets)
        for offset in self.written:
            assert offset < max(self.limit_offset, start) or offset in left, f"{offset} was above the limit"
        for offset, record in self.last().items():
            if offset < start:
                continue
            if offset in left:
                assert offset not in self._overdue, f"tombstone {offset} has outlived its time"
            else:
                assert record.value is None, f"the last value of {record.key!r}, {offset}, is gone"
                tombstone = self._tombstones.get(offset)
                assert tombstone is not None, f"{offset} was a tombstone that no pass has met"
                assert tombstone.may_go_at_ms <= self._passed_at_ms, f"{offset} was a live tombstone"
        last_below = {
            record.key: offset for offset, record in self.written.items() if offset < self.compacted_offset
        }
        for record in found:
            if record.offset < self.compacted_offset:
                assert record.offset == last_below[record.key], f"{record.offset} is superfluous"

    def last(self) -> dict[int, Record]:
        """The last record of every key."""
        last = {record.key: record for record in self.written.values() if record.key is not None}
        return {record.offset: record for record in last.values()}
