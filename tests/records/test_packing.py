"""Packing and unpacking many records at once say the same as building and opening them one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.records.batch import decode_header, stamp_append_time, verify_crc
from ropewalk.records.codec import Codec
from ropewalk.records.packing import Entry, entry_bytes, pack, restamp
from ropewalk.records.record import Record, build, decode_records
from ropewalk.records.unpacking import unpack

Unpacked = tuple[str, int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

lengths = st.one_of(st.integers(0, 200), st.sampled_from([63, 64, 8191, 8192, 20_000]))
contents = st.one_of(st.none(), lengths.map(lambda length: b"x" * length))
headers = st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=5))), max_size=3)
entries = st.lists(
    st.tuples(contents, contents, st.integers(1_700_000_000_000, 1_700_000_100_000), headers.map(tuple)),
    min_size=1,
    max_size=30,
)


def opened(batch: bytes | bytearray, from_offset: int = 0) -> list[Unpacked]:
    def make(*fields: object) -> Unpacked:
        return fields  # type: ignore[return-value]

    view = memoryview(batch)
    return unpack(view, decode_header(view), topic="t", partition=3, from_offset=from_offset, make=make)


@given(entries, st.sampled_from(list(Codec)))
def test_packed_records_are_those_that_were_built(packed: list[Entry], codec: Codec) -> None:
    batch = pack(
        packed, codec=codec, producer_id=ProducerId(5), producer_epoch=ProducerEpoch(2), base_sequence=9
    )
    records = [Record(timestamp=at, key=key, value=value, headers=tags) for key, value, at, tags in packed]
    built = build(
        records, codec=codec, producer_id=ProducerId(5), producer_epoch=ProducerEpoch(2), base_sequence=9
    )
    assert batch == built
    assert len(pack(packed, codec=Codec.NONE)) <= 61 + sum(
        entry_bytes(key, value, tags) for key, value, _, tags in packed
    )


@given(entries, st.sampled_from(list(Codec)), st.integers(0, 30), st.booleans())
def test_unpacked_records_are_those_that_decoding_finds(
    packed: list[Entry], codec: Codec, from_offset: int, append_time: bool
) -> None:
    batch = pack(packed, codec=codec)
    if append_time:
        stamp_append_time(memoryview(batch), 1_800_000_000_000)
    expected = [
        ("t", 3, record.offset, record.timestamp, record.key, record.value, record.headers)
        for record in decode_records(batch)
        if record.offset >= from_offset
    ]
    assert opened(batch, from_offset) == expected


@given(entries, st.data())
def test_a_damaged_batch_is_refused_or_says_what_decoding_says(
    packed: list[Entry], data: st.DataObject
) -> None:
    batch = pack(packed, codec=Codec.NONE)
    position = data.draw(st.integers(61, len(batch) - 1))
    batch[position] = data.draw(st.integers(0, 255))
    try:
        expected = [
            (record.offset, record.key, record.value, record.headers) for record in decode_records(batch)
        ]
    except CorruptBatch:
        with pytest.raises(CorruptBatch):
            opened(batch)
    else:
        assert [(each[2], *each[4:]) for each in opened(batch)] == expected


def test_a_batch_can_be_given_another_identity() -> None:
    batch = pack([(None, b"v", 1, ())], codec=Codec.ZSTD, producer_id=ProducerId(1), base_sequence=0)
    restamp(batch, producer_id=ProducerId(8), producer_epoch=ProducerEpoch(3), base_sequence=77)
    header = decode_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 3, 77)
    assert verify_crc(memoryview(batch))
    assert decode_records(batch)[0].value == b"v"
