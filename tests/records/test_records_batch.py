"""The batch header: hand-made bytes, stamping in place, walking a buffer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import CorruptBatch, UnsupportedCompression, UnsupportedFormat
from ropewalk.base.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from ropewalk.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    decode_header,
    iterate,
    stamp,
    stamp_append_time,
    verify_crc,
)
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build, decode_records

# Written by hand from the layout. The CRC comes from a bitwise CRC32C (polynomial 0x82F63B78, reflected), not
# from the library under test.
GOLDEN = bytes.fromhex(
    "0000000000000000"  # base offset
    "0000003a"  # length: 70 − 12
    "ffffffff"  # leader epoch: not known to producers
    "02"  # magic
    "223e98d2"  # CRC32C of all that follows
    "0000"  # attributes
    "00000000"  # last offset delta
    "00000000000003e8"  # base timestamp
    "00000000000003e8"  # max timestamp
    "0000000000000007"  # producer id
    "0001"  # producer epoch
    "00000005"  # base sequence
    "00000001"  # record count
    "10"  # the record: 8 bytes, as every number in it zigzag
    "000000"  # attributes, timestamp delta, offset delta
    "026b"  # key: 1 byte, k
    "0276"  # value: 1 byte, v
    "00"  # no headers
)
GOLDEN_RECORD = Record(timestamp=1000, key=b"k", value=b"v")


def test_hand_made_bytes_are_read_as_meant() -> None:
    assert decode_header(GOLDEN) == BatchHeader(
        base_offset=Offset(0),
        size_bytes=70,
        leader_epoch=LeaderEpoch(-1),
        crc=0x223E98D2,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=1000,
        max_timestamp=1000,
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(1),
        base_sequence=5,
        record_count=1,
    )
    assert verify_crc(memoryview(GOLDEN))
    assert decode_records(GOLDEN) == [GOLDEN_RECORD]


def test_the_same_record_is_built_to_the_same_bytes() -> None:
    built = build(
        [GOLDEN_RECORD], producer_id=ProducerId(7), producer_epoch=ProducerEpoch(1), base_sequence=5
    )
    assert built == GOLDEN


def test_stamping_an_offset_leaves_the_crc_true() -> None:
    batch = bytearray(GOLDEN)
    stamp(memoryview(batch), base_offset=Offset(2**40), leader_epoch=LeaderEpoch(3))
    header = decode_header(batch)
    assert (header.base_offset, header.leader_epoch, header.end_offset) == (2**40, 3, 2**40 + 1)
    assert verify_crc(memoryview(batch))
    assert batch[16:] == GOLDEN[16:]


def test_stamping_the_append_time_makes_it_the_time_of_every_record() -> None:
    batch = build([Record(timestamp=1, value=b"a"), Record(timestamp=2, value=b"b")])
    stamp_append_time(memoryview(batch), 9_999)
    assert verify_crc(memoryview(batch))
    assert decode_header(batch).uses_append_time
    assert [record.timestamp for record in decode_records(batch)] == [9_999, 9_999]


@pytest.mark.parametrize(
    ("position", "replacement", "error"),
    [
        pytest.param(16, b"\x00", UnsupportedFormat, id="format 0"),
        pytest.param(16, b"\x01", UnsupportedFormat, id="format 1"),
        pytest.param(16, b"\x03", UnsupportedFormat, id="a format yet to come"),
        pytest.param(8, b"\xff\xff\xff\xff", CorruptBatch, id="negative length"),
        pytest.param(8, b"\x00\x00\x00\x30", CorruptBatch, id="length one short of a header"),
    ],
)
def test_impossible_headers_are_refused(position: int, replacement: bytes, error: type[Exception]) -> None:
    batch = bytearray(GOLDEN)
    batch[position : position + len(replacement)] = replacement
    with pytest.raises(error):
        decode_header(batch)


@pytest.mark.parametrize("size", range(HEADER_BYTES))
def test_fewer_bytes_than_a_header_are_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatch):
        decode_header(GOLDEN[:size])


def test_a_short_message_of_an_old_format_is_named_as_such() -> None:
    message = bytes(8) + (22).to_bytes(4, "big") + bytes(4) + b"\x01" + bytes(17)
    with pytest.raises(UnsupportedFormat, match="format 1"):
        decode_header(message)


@pytest.mark.parametrize("number", [5, 6, 7])
def test_codec_numbers_without_a_codec_are_refused_when_asked_for(number: int) -> None:
    batch = bytearray(GOLDEN)
    batch[22] = number
    with pytest.raises(UnsupportedCompression):
        _ = decode_header(batch).codec


@pytest.mark.parametrize(
    ("base_sequence", "record_count", "expected"),
    [(-1, 3, -1), (0, 1, 0), (5, 3, 7), (2**31 - 1, 1, 2**31 - 1), (2**31 - 1, 2, 0), (2**31 - 2, 5, 2)],
)
def test_sequences_wrap_to_zero(base_sequence: int, record_count: int, expected: int) -> None:
    batch = build([Record(value=b"")] * record_count, base_sequence=base_sequence)
    assert decode_header(batch).last_sequence == expected


def test_attributes_tell_the_kind_of_a_batch() -> None:
    header = decode_header(build([Record()], codec=Codec.LZ4, is_transactional=True, is_control=True))
    assert (header.codec, header.is_compressed) == (Codec.LZ4, True)
    assert (header.is_transactional, header.is_control, header.uses_append_time) == (True, True, False)


@given(st.lists(st.binary(max_size=50), max_size=5), st.integers(min_value=1, max_value=200))
def test_a_buffer_cut_anywhere_yields_the_whole_batches_before_the_cut(values: list[bytes], cut: int) -> None:
    batches = [build([Record(value=value)]) for value in values]
    buffer = b"".join(batches)
    kept = buffer[: max(0, len(buffer) - cut)]
    found = [kept[position : position + header.size_bytes] for position, header in iterate(kept)]
    assert b"".join(found) == buffer[: sum(map(len, found))]
    assert sum(map(len, found)) <= len(kept)
    assert found == batches[: len(found)]
    assert len(found) == len(batches) or sum(map(len, batches[: len(found) + 1])) > len(kept)


def test_a_wrong_batch_in_a_buffer_is_not_stepped_over() -> None:
    buffer = bytearray(GOLDEN * 3)
    buffer[70 + 16] = 9
    walk = iterate(buffer)
    assert next(walk)[0] == 0
    with pytest.raises(UnsupportedFormat):
        next(walk)
