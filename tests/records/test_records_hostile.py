"""Batches that lie under a true CRC, as a hostile producer sends them: whoever opens them gets records or an operating error.

A plain topic takes such a batch without opening it. Consumers, compaction and a later change of the topic's settings meet it
as it is, so every reader is tried on it and not only the check at the door.
"""

import re
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ropewalk.base.errors import CorruptBatch, InvalidRecord, RopewalkError
from ropewalk.records.batch import HEADER_BYTES, decode_header, stamp_crc, verify_crc
from ropewalk.records.codec import Codec
from ropewalk.records.compression import compress
from ropewalk.records.conform import conform
from ropewalk.records.inspection import inspect
from ropewalk.records.record import Record, build, decode_records, encode_varint, iterate_records
from ropewalk.records.sieve import open_batch, rebuild
from ropewalk.records.validate import Rules, TimestampType, validate_produced

NOW_MS = 1_000_000
RULES = [
    Rules(bytes_max=100_000),
    Rules(bytes_max=100_000, checks_records=True),
    Rules(bytes_max=100_000, keys_required=True),
    Rules(bytes_max=100_000, keys_required=True, timestamp_type=TimestampType.APPEND),
    Rules(bytes_max=100_000, before_max_ms=1000),
    Rules(bytes_max=100_000, compression=Codec.LZ4),
]
RECORDS = [Record(timestamp=NOW_MS, key=b"k%d" % n, value=b"v" * n, headers=(("h", None),)) for n in range(3)]
EVIL = st.sampled_from([b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\xff" * 9 + b"\1", b"\xff" * 4 + b"\x0f"])


@st.composite
def lies(draw: st.DrawFn) -> bytearray:
    """A batch whose header or opened records were changed, sealed again as if nothing had happened."""
    codec = draw(st.sampled_from(Codec))
    return _with_lies(draw, build(RECORDS), codec)


def _with_lies(draw: st.DrawFn, batch: bytearray, codec: Codec = Codec.NONE) -> bytearray:
    payload = bytearray(batch[HEADER_BYTES:])
    for _ in range(draw(st.integers(0, 3))):
        position = draw(st.integers(0, len(payload)))
        evil = draw(EVIL | st.binary(min_size=1, max_size=4))
        payload[position : position + draw(st.sampled_from([0, 1, len(evil)]))] = evil
    batch[HEADER_BYTES:] = compress(codec, payload)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[22] = codec
    for _ in range(draw(st.integers(0, 2))):
        position = draw(st.integers(21, HEADER_BYTES - 1))
        batch[position] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
    stamp_crc(memoryview(batch))
    return batch


@given(lies(), st.sampled_from(RULES))
def test_what_a_topic_takes_is_a_batch_that_can_be_read_or_is_known_to_be_corrupt(
    batch: bytearray, rules: Rules
) -> None:
    try:
        header = validate_produced(memoryview(batch), rules, NOW_MS)
        taken, header = conform(memoryview(batch), header, rules, NOW_MS)
    except RopewalkError:
        return
    assert decode_header(taken) == header
    assert verify_crc(taken)
    if rules.opens_records:
        assert len(decode_records(taken)) == header.record_count
    else:
        _read_or_refuse(taken)


@st.composite
def usual_records(draw: st.DrawFn) -> bytearray:
    """What queues write, mostly: no keys, values of a few bytes or of thousands, and the same headers; a few bytes of it may be changed."""
    sizes = draw(st.lists(st.sampled_from([0, 1, 63, 64, 8191, 8192]), min_size=1, max_size=6))
    headers = st.sampled_from([(), (("h", b"v"),), (("h", None), ("i", b""))])
    keys = st.sampled_from([None, None, None, b"", b"k", b"\0\1\2"])
    entries = [
        Record(timestamp=NOW_MS, key=draw(keys), value=b"v" * size, headers=draw(headers)) for size in sizes
    ]
    return _with_lies(draw, build(entries))


@given(usual_records() | lies())
def test_records_are_the_same_one_by_one_and_all_at_once(batch: bytearray) -> None:
    try:
        one_by_one = list(iterate_records(batch))
    except RopewalkError as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            decode_records(batch)
    else:
        assert decode_records(batch) == one_by_one


@st.composite
def series(draw: st.DrawFn) -> bytearray:
    """Records of any size with usual and unusual numbers, a few bytes of which were changed."""
    times = draw(
        st.lists(st.sampled_from([0, 1, 63, 64, 9000, -1, 1 << 21, 1 << 45]), min_size=1, max_size=5)
    )
    sizes = st.sampled_from([None, 0, 1, 62, 63, 64, 8191, 8192])
    records = [
        Record(
            timestamp=NOW_MS + time,
            key=None if (size := draw(sizes)) is None else b"k" * size,
            value=None if (size := draw(sizes)) is None else b"v" * size,
            headers=draw(st.sampled_from([(), (("h", b"x"),)])),
        )
        for time in times
    ]
    return _with_lies(draw, build(records * draw(st.sampled_from([1, 1, 40]))))


@given(lies() | series())
def test_what_passes_the_inspection_is_what_every_reader_can_open(batch: bytearray) -> None:
    header = decode_header(batch)
    assume(
        header.last_offset_delta == header.record_count - 1
    )  # or it is refused before anybody looks inside
    try:
        offsets = [record.offset - header.base_offset for record in decode_records(batch)]
        is_sound = offsets == list(range(header.record_count))
    except RopewalkError:
        is_sound = False
    try:
        inspect(memoryview(batch), header)
    except RopewalkError:
        assert not is_sound
    else:
        assert is_sound


def test_a_record_that_is_to_blame_is_named() -> None:
    batch = bytearray(build(RECORDS))
    second = HEADER_BYTES + 1 + batch[HEADER_BYTES] // 2
    batch[second + 3] = 6  # an offset delta of 3 where 1 is due
    with pytest.raises(InvalidRecord, match="record 1") as refused:
        inspect(memoryview(batch), decode_header(batch))
    assert refused.value.record_indexes == (1,)


@given(lies(), st.none() | st.integers(0, 2 * NOW_MS))
def test_compaction_rebuilds_a_lie_truly_or_refuses_it(
    batch: bytearray, delete_horizon_ms: int | None
) -> None:
    try:
        opened = open_batch(memoryview(batch))
    except RopewalkError:
        return
    kept = opened.entries[:1]
    if not kept:
        return
    rebuilt = rebuild(opened, kept, delete_horizon_ms=delete_horizon_ms)
    assert verify_crc(memoryview(rebuilt))
    (entry,) = open_batch(memoryview(rebuilt)).entries
    assert (entry.offset, entry.key) == (kept[0].offset, kept[0].key)


def _read_or_refuse(batch: memoryview) -> None:
    with suppress(RopewalkError):  # the producer lied, and whoever reads it is told so
        decode_records(batch)


def _with_timestamp_delta(delta: bytes) -> bytearray:
    """One record with a key, whose time differs from the batch's by what `delta` encodes."""
    batch = build([Record(timestamp=NOW_MS, key=b"k")])
    body = b"\0" + delta + b"\0" + b"\2k" + b"\1" + b"\0"
    batch[HEADER_BYTES:] = encode_varint(len(body)) + body
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    stamp_crc(memoryview(batch))
    return batch


@pytest.mark.parametrize(
    "delta",
    [
        pytest.param(b"\xfe" + b"\xff" * 8 + b"\x01", id="the largest of 64 bits"),
        pytest.param(b"\xff" * 9 + b"\x01", id="the smallest of 64 bits"),
        pytest.param(b"\xfe" + b"\xff" * 8 + b"\x7f", id="more than 64 bits"),
        pytest.param(b"\xff" * 9 + b"\x7f", id="more than 64 bits, negative"),
    ],
)
def test_a_time_that_no_field_can_carry_is_corrupt_for_every_reader(delta: bytes) -> None:
    batch = _with_timestamp_delta(delta)
    with pytest.raises(CorruptBatch, match="timestamp"):
        decode_records(batch)
    with pytest.raises(CorruptBatch, match="timestamp"):
        open_batch(memoryview(batch))
    with pytest.raises(InvalidRecord):
        validate_produced(memoryview(batch), RULES[2], NOW_MS)


@pytest.mark.parametrize(
    ("codec", "count"),
    [
        (Codec.NONE, 2),
        (Codec.NONE, 1000),
        (Codec.NONE, 2**31 - 1),
        (Codec.ZSTD, 1 << 21),
        (Codec.ZSTD, 2**31 - 1),
    ],
)
def test_more_records_than_there_can_be_are_refused_without_opening(codec: Codec, count: int) -> None:
    batch = build([Record(timestamp=NOW_MS, key=b"k")], codec=codec)
    batch[57:61] = count.to_bytes(4, "big")
    batch[23:27] = (count - 1).to_bytes(4, "big")
    stamp_crc(memoryview(batch))
    for rules in RULES:
        with pytest.raises(InvalidRecord, match=f"{count} records"):
            validate_produced(memoryview(batch), rules, NOW_MS)
    with pytest.raises(CorruptBatch):
        open_batch(memoryview(batch))
