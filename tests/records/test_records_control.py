"""State batches: a log reads the key from the head alone, and takes nothing else for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import InvalidRecord
from ropewalk.base.ids import OwnerId, ProducerEpoch, ProducerId
from ropewalk.records.batch import decode_header, verify_crc
from ropewalk.records.codec import Codec
from ropewalk.records.control import (
    BEGINS_HERE,
    NOT_WHOLE,
    OWNER_GONE,
    STATE_HEAD_BYTES,
    StateKey,
    build_state,
    read_state_key,
)
from ropewalk.records.marker import build_marker, read_marker
from ropewalk.records.record import Record, build, decode_records
from ropewalk.records.validate import Rules, validate_produced

OWNER = OwnerId(bytes(range(16)))
KEY = b"\x00\x01\x03\xe8" + OWNER + b"\xff" * 8


def read(batch: bytes | bytearray) -> StateKey | None:
    return read_state_key(decode_header(batch), batch[:STATE_HEAD_BYTES])


def test_a_state_batch_is_a_control_batch_of_one_record_without_a_producer() -> None:
    batch = build_state(OWNER, b"delta", timestamp_ms=5000)
    header = decode_header(batch)
    (record,) = decode_records(batch)
    assert verify_crc(memoryview(batch))
    assert (header.attributes, header.record_count, header.max_timestamp) == (0x20, 1, 5000)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert (record.key, record.value) == (KEY, b"delta")


@given(
    owner=st.binary(min_size=16, max_size=16).map(OwnerId),
    value=st.binary() | st.integers(0, 1 << 21).map(bytes),
    snapshot_start=st.sampled_from([NOT_WHOLE, BEGINS_HERE, OWNER_GONE]) | st.integers(0, 2**63 - 1),
)
def test_the_head_of_a_state_batch_tells_its_key(owner: OwnerId, value: bytes, snapshot_start: int) -> None:
    batch = build_state(owner, value, timestamp_ms=5000, snapshot_start=snapshot_start)
    assert read(batch) == StateKey(owner, snapshot_start)
    assert read_marker(batch) is None


def test_fields_of_later_versions_are_passed_over() -> None:
    key = b"\x00\x02" + KEY[2:] + bytes(100)
    assert read(build([Record(timestamp=1, key=key, value=b"")], is_control=True)) == StateKey(
        OWNER, NOT_WHOLE
    )


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(build([Record(timestamp=1, key=KEY, value=b"")]), id="no control batch"),
        pytest.param(
            build([Record(timestamp=1, key=KEY, value=b"")], is_control=True, producer_id=ProducerId(7)),
            id="with a producer",
        ),
        pytest.param(
            build([Record(timestamp=1, key=KEY, value=bytes(999))], is_control=True, codec=Codec.GZIP),
            id="compressed",
        ),
        pytest.param(build_marker(ProducerId(7), ProducerEpoch(3), True, 12, 5000), id="marker"),
        pytest.param(
            build([Record(timestamp=1, key=b"\0\0\0\2" + KEY[4:], value=b"")], is_control=True),
            id="other type",
        ),
        pytest.param(build([Record(timestamp=1, key=KEY[:20], value=b"")], is_control=True), id="short key"),
        pytest.param(build([Record(timestamp=1, value=b"")], is_control=True), id="no key"),
        pytest.param(
            build([Record(timestamp=1, key=KEY[:-1] + b"\xfc", value=b"")], is_control=True),
            id="a start that means nothing",
        ),
    ],
)
def test_other_batches_are_no_state(batch: bytearray) -> None:
    assert read(batch) is None


@given(st.binary(max_size=80))
def test_whatever_follows_the_header_reading_the_key_does_not_fail(rest: bytes) -> None:
    header = build_state(OWNER, b"", timestamp_ms=0)[:61]
    read(header + rest)


def test_a_client_may_not_send_a_state_batch() -> None:
    batch = build_state(OWNER, b"delta", timestamp_ms=5000)
    with pytest.raises(InvalidRecord, match="brokers only"):
        validate_produced(memoryview(batch), Rules(bytes_max=1 << 20), now_ms=5000)
