"""What is gathered of a log is what is left when all of it is applied, one record after the other."""

from random import Random

import pytest

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import OwnerId, ProducerEpoch, ProducerId
from ropewalk.broker.hosting.latest_records import LatestRecords
from ropewalk.records.batch import HEADER_BYTES, decode_header
from ropewalk.records.codec import Codec
from ropewalk.records.control import build_state
from ropewalk.records.keyed import gather_last
from ropewalk.records.marker import build_marker
from ropewalk.records.record import Record, build, decode_records


class Oracle:
    """Every record at its place in the log: of those that count, the last of its key."""

    def __init__(self) -> None:
        self.written: list[tuple[bytes, bytes | None, int | None]] = []
        self.open: dict[int, list[int]] = {}
        self.counting: set[int] = set()

    def add(self, records: list[Record], producer_id: int | None) -> None:
        for record in records:
            number = len(self.written)
            self.written.append((record.key or b"", record.value, producer_id))
            if producer_id is None:
                self.counting.add(number)
            else:
                self.open.setdefault(producer_id, []).append(number)

    def end(self, producer_id: int, committed: bool) -> None:
        numbers = self.open.pop(producer_id, [])
        if committed:
            self.counting.update(numbers)

    def values(self) -> dict[bytes, bytes | None]:
        return {self.written[number][0]: self.written[number][1] for number in sorted(self.counting)}

    def pending(self) -> list[tuple[int, tuple[bytes, bytes | None]]]:
        """Only what would change something: the last of its producer and key, and after what counts."""
        numbers = sorted(number for numbers in self.open.values() for number in numbers)
        last = {(self.written[number][2], self.written[number][0]): number for number in numbers}
        return [
            (producer_id, (key, self.written[number][1]))
            for (producer_id, key), number in sorted(last.items(), key=lambda item: item[1])
            if producer_id is not None
            and not any(other > number and self.written[other][0] == key for other in self.counting)
        ]


def test_what_is_gathered_is_what_the_log_comes_to() -> None:
    for seed in range(400):
        rng = Random(seed)
        latest, oracle = LatestRecords(), Oracle()
        taken: dict[bytes, bytes | None] = {}
        for _ in range(rng.randrange(1, 16)):
            producer_id = rng.choice((7, 8, 9))
            match rng.choice(("plain", "plain", "sent", "sent", "end", "end", "take")):
                case "plain":
                    records = some_records(rng)
                    add(latest, build(records, codec=rng.choice((Codec.NONE, Codec.LZ4))))
                    oracle.add(records, None)
                case "sent":
                    records = some_records(rng)
                    add(latest, sent(records, producer_id))
                    oracle.add(records, producer_id)
                case "end":
                    committed = rng.random() < 0.6
                    marker = build_marker(ProducerId(producer_id), ProducerEpoch(0), committed, 0, 0)
                    add(latest, marker)
                    oracle.end(producer_id, committed)
                case "take":
                    taken |= dict(latest.take())
        pending = list(latest.pending())
        taken |= dict(latest.take())
        assert taken == oracle.values(), seed
        assert pending == oracle.pending(), seed


def test_a_key_that_comes_again_goes_to_the_end() -> None:
    latest = LatestRecords()
    for key in (b"a", b"b", b"a"):
        add(latest, build([Record(key=key, value=b"v")]))
    assert [key for key, _ in latest.take()] == [b"b", b"a"]


@pytest.mark.parametrize("size", [0, 1, 50, 63, 64, 100, 8191, 8192, 9000])
def test_every_size_of_key_and_value_is_read_as_the_long_way_round_reads_it(size: int) -> None:
    for key in (None, b"", b"k" * size):
        for value in (None, b"", b"v" * size):
            for headers in ((), (("h", b"x"),)):
                records = [
                    Record(timestamp=index * 1000, key=key, value=value, headers=headers)
                    for index in range(70)
                ]
                data = bytes(build([*records, Record(key=b"other", value=b"v")]))
                gathered: dict[bytes, bytes | None] = {}
                gather_last(data, 0, decode_header(data), gathered)
                assert gathered == {record.key or b"": record.value for record in decode_records(data)}


def test_a_damaged_batch_is_refused_or_read_as_the_long_way_round_reads_it() -> None:
    whole = bytes(build([Record(key=b"key-%d" % index, value=b"value") for index in range(5)]))
    refused_count = 0
    for position in range(HEADER_BYTES, len(whole)):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            data = whole[:position] + bytes([byte]) + whole[position + 1 :]
            gathered: dict[bytes, bytes | None] = {}
            try:
                expected = {record.key or b"": record.value for record in decode_records(data)}
            except CorruptBatch:
                refused_count += 1
                try:
                    gather_last(data, 0, decode_header(data), gathered)
                except CorruptBatch:
                    continue
                assert is_about_a_delta(whole, position), (
                    "only deltas, which nobody asks for here, go unchecked"
                )
            else:
                gather_last(data, 0, decode_header(data), gathered)
                assert gathered == expected
    assert refused_count


def is_about_a_delta(batch: bytes, position: int) -> bool:
    """Whether the byte is in the timestamp's or the offset's delta of a record."""
    at = HEADER_BYTES
    while at < len(batch):
        if at + 2 <= position <= at + 3:
            return True
        at += 1 + (batch[at] >> 1)
    return False


def some_records(rng: Random) -> list[Record]:
    return [
        Record(key=rng.choice((b"a", b"b", b"c")), value=rng.choice((None, b"%d" % rng.randrange(1000))))
        for _ in range(rng.randrange(1, 4))
    ]


def sent(records: list[Record], producer_id: int) -> bytearray:
    return build(
        records, producer_id=ProducerId(producer_id), producer_epoch=ProducerEpoch(0), is_transactional=True
    )


def add(latest: LatestRecords, batch: bytearray) -> None:
    data = bytes(batch)
    latest.add(b"--" + data, 2, decode_header(data))


@pytest.mark.parametrize("has_open", [True, False])
def test_state_of_others_is_no_record(has_open: bool) -> None:
    latest = LatestRecords()
    if has_open:
        sent = bytes(build([Record(key=b"k", value=b"v")], producer_id=ProducerId(7), is_transactional=True))
        latest.add(sent, 0, decode_header(sent))
    state = bytes(build_state(OwnerId(bytes(16)), b"delta", timestamp_ms=1))
    latest.add(state, 0, decode_header(state))
    assert list(latest.take()) == []
