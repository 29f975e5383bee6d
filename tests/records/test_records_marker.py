"""Transaction markers: the bytes are Kafka's, and what is no marker is not taken for one."""

import pytest

from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.records.batch import decode_header, verify_crc
from ropewalk.records.marker import Marker, build_marker, read_marker
from ropewalk.records.record import Record, build, decode_records
from ropewalk.records.sieve import emptied


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_a_control_batch_without_a_sequence(committed: bool) -> None:
    batch = build_marker(ProducerId(7), ProducerEpoch(3), committed, 12, 5000)
    header = decode_header(batch)
    (record,) = decode_records(batch)
    assert verify_crc(memoryview(batch))
    assert header.attributes == 0x30
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.max_timestamp, header.record_count) == (5000, 1)
    assert record.key == bytes([0, 0, 0, int(committed)])
    assert record.value == bytes([0, 0, 0, 0, 0, 12])
    assert read_marker(batch) == Marker(committed, 12)


def test_fields_of_later_versions_are_passed_over() -> None:
    record = Record(timestamp=1, key=bytes([0, 1, 0, 1, 9]), value=bytes([0, 1, 0, 0, 0, 4, 9, 9]))
    batch = build([record], producer_id=ProducerId(7), is_transactional=True, is_control=True)
    assert read_marker(batch) == Marker(True, 4)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\0\0\2", b"\0\0\0\0\0\1"),
        (b"\0\0", b"\0\0\0\0\0\1"),
        (b"\0\0\0\1", b"\0\0"),
        (None, b"\0\0\0\0\0\1"),
        (b"\0\0\0\1", None),
    ],
)
def test_other_control_batches_end_nothing(key: bytes | None, value: bytes | None) -> None:
    batch = build(
        [Record(timestamp=1, key=key, value=value)],
        producer_id=ProducerId(7),
        is_transactional=True,
        is_control=True,
    )
    assert read_marker(batch) is None


def test_an_emptied_marker_ends_nothing() -> None:
    batch = build_marker(ProducerId(7), ProducerEpoch(3), True, 12, 5000)
    assert read_marker(emptied(decode_header(batch))) is None
