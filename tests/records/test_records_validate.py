"""What a producer may send: the table of refusals, their order, and any mutation at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import (
    BatchTooLarge,
    CorruptBatch,
    InvalidRecord,
    InvalidTimestamp,
    RopewalkError,
    UnsupportedCompression,
    UnsupportedFormat,
)
from ropewalk.base.ids import Offset, ProducerEpoch, ProducerId
from ropewalk.records.batch import HEADER_BYTES, decode_header, stamp_crc, verify_crc
from ropewalk.records.codec import Codec
from ropewalk.records.conform import conform
from ropewalk.records.record import Record, build, decode_records
from ropewalk.records.validate import Rules, TimestampType, validate_produced

NOW_MS = 1_000_000
PLAIN = Rules(bytes_max=10_000)
COMPACTED = Rules(bytes_max=10_000, keys_required=True)
KEYED = [Record(timestamp=NOW_MS, key=b"k%d" % index, value=b"v") for index in range(3)]
KEYLESS = [KEYED[0], Record(timestamp=NOW_MS, value=b"v"), KEYED[1], Record(timestamp=NOW_MS)]


def changed(batch: bytearray, position: int, replacement: bytes, *, crc: bool = True) -> bytearray:
    """The batch with bytes replaced, and the CRC of a producer who meant it so."""
    batch = bytearray(batch)
    batch[position : position + len(replacement)] = replacement
    if crc:
        stamp_crc(memoryview(batch))
    return batch


def at(*timestamps: int) -> bytearray:
    return build([Record(timestamp=timestamp, key=b"k") for timestamp in timestamps])


BATCH = build(KEYED)
CREATED_LATELY = Rules(bytes_max=10_000, before_max_ms=500, after_max_ms=100)


@pytest.mark.parametrize(
    ("batch", "rules"),
    [
        pytest.param(BATCH, PLAIN, id="a batch"),
        pytest.param(BATCH, COMPACTED, id="with keys to a compacted topic"),
        pytest.param(build(KEYLESS), PLAIN, id="without keys to a plain topic"),
        pytest.param(build(KEYED, codec=Codec.ZSTD), PLAIN, id="zstd in a request that knows it"),
        pytest.param(build(KEYED, codec=Codec.GZIP), COMPACTED, id="compressed to a compacted topic"),
        pytest.param(BATCH, Rules(bytes_max=len(BATCH)), id="exactly as large as allowed"),
        pytest.param(
            build(
                KEYED,
                producer_id=ProducerId(1),
                producer_epoch=ProducerEpoch(0),
                base_sequence=0,
                is_transactional=True,
            ),
            PLAIN,
            id="transactional",
        ),
        pytest.param(at(-1), CREATED_LATELY, id="no timestamp"),
        pytest.param(at(0), PLAIN, id="as old as it gets"),
        pytest.param(at(NOW_MS - 500, NOW_MS + 100), CREATED_LATELY, id="at the bounds"),
        pytest.param(
            at(2**60),
            Rules(bytes_max=10_000, timestamp_type=TimestampType.APPEND),
            id="the broker's clock counts",
        ),
    ],
)
def test_accepts(batch: bytearray, rules: Rules) -> None:
    before = bytes(batch)
    assert validate_produced(memoryview(batch), rules, NOW_MS) == decode_header(batch)
    assert batch == before


@pytest.mark.parametrize(
    ("batch", "rules", "error"),
    [
        pytest.param(b"", PLAIN, InvalidRecord, id="no batch"),
        pytest.param(BATCH + BATCH, PLAIN, InvalidRecord, id="two batches"),
        pytest.param(BATCH + b"x", PLAIN, InvalidRecord, id="bytes after the batch"),
        pytest.param(BATCH[:-1], PLAIN, CorruptBatch, id="cut short"),
        pytest.param(BATCH[:40], PLAIN, CorruptBatch, id="cut within the header"),
        pytest.param(changed(BATCH, 16, b"\x01"), PLAIN, UnsupportedFormat, id="format 1"),
        pytest.param(changed(BATCH, 70, b"?", crc=False), PLAIN, CorruptBatch, id="wrong CRC"),
        pytest.param(changed(BATCH, 23, b"\x00\x00\x00\x03"), PLAIN, InvalidRecord, id="a delta too many"),
        pytest.param(changed(BATCH, 57, b"\x00\x00\x00\x00"), PLAIN, InvalidRecord, id="no records"),
        pytest.param(
            changed(changed(BATCH, 57, bytes(4)), 23, b"\xff\xff\xff\xff"),
            PLAIN,
            InvalidRecord,
            id="consistently empty",
        ),
        pytest.param(build(KEYED, base_offset=Offset(5)), PLAIN, InvalidRecord, id="an offset of its own"),
        pytest.param(build(KEYED, is_control=True), PLAIN, InvalidRecord, id="control records"),
        pytest.param(changed(BATCH, 22, b"\x40"), PLAIN, InvalidRecord, id="a delete horizon"),
        pytest.param(
            changed(BATCH, 22, b"\x80"), PLAIN, InvalidRecord, id="the first bit that means nothing"
        ),
        pytest.param(changed(BATCH, 21, b"\x01"), PLAIN, InvalidRecord, id="another that means nothing"),
        pytest.param(changed(BATCH, 21, b"\x80"), PLAIN, InvalidRecord, id="the last of them"),
        pytest.param(
            build(KEYED, is_transactional=True), PLAIN, InvalidRecord, id="transactional without producer"
        ),
        pytest.param(
            build(KEYED, producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0)),
            PLAIN,
            InvalidRecord,
            id="producer without sequence",
        ),
        pytest.param(
            build(KEYED, producer_id=ProducerId(1), base_sequence=0),
            PLAIN,
            InvalidRecord,
            id="producer without epoch",
        ),
        pytest.param(BATCH, Rules(bytes_max=len(BATCH) - 1), BatchTooLarge, id="too large"),
        pytest.param(at(NOW_MS + 3_600_001), PLAIN, InvalidTimestamp, id="over an hour ahead"),
        pytest.param(at(NOW_MS, NOW_MS + 101), CREATED_LATELY, InvalidTimestamp, id="the last one ahead"),
        pytest.param(
            changed(BATCH, 27, (2**60).to_bytes(8, "big")),
            PLAIN,
            InvalidTimestamp,
            id="the first one ahead, and a largest that hides it",
        ),
        pytest.param(at(NOW_MS - 501), CREATED_LATELY, InvalidTimestamp, id="too old"),
        pytest.param(
            at(NOW_MS, NOW_MS - 501, NOW_MS), CREATED_LATELY, InvalidTimestamp, id="one within too old"
        ),
        pytest.param(changed(BATCH, 22, b"\x05"), PLAIN, UnsupportedCompression, id="codec 5"),
        pytest.param(changed(BATCH, 22, b"\x07"), COMPACTED, UnsupportedCompression, id="codec 7"),
        pytest.param(
            build(KEYED, codec=Codec.ZSTD),
            Rules(bytes_max=10_000, zstd_allowed=False),
            UnsupportedCompression,
            id="zstd in an old request",
        ),
        pytest.param(build(KEYLESS), COMPACTED, InvalidRecord, id="no key on a compacted topic"),
        pytest.param(changed(BATCH, 22, b"\x01"), COMPACTED, InvalidRecord, id="not the codec it claims"),
        pytest.param(
            changed(BATCH, 61, b"\x7e"), COMPACTED, InvalidRecord, id="framing broken under a true CRC"
        ),
        pytest.param(changed(BATCH, 64, b"\x02"), COMPACTED, InvalidRecord, id="offset deltas out of order"),
    ],
)
def test_refuses(batch: bytes, rules: Rules, error: type[RopewalkError]) -> None:
    with pytest.raises(error) as caught:
        validate_produced(memoryview(batch), rules, NOW_MS)
    assert type(caught.value) is error


def test_all_records_without_a_key_are_named() -> None:
    with pytest.raises(InvalidRecord) as caught:
        validate_produced(memoryview(build(KEYLESS, codec=Codec.LZ4)), COMPACTED, NOW_MS)
    assert caught.value.record_indexes == (1, 3)


FAULTS = [
    (UnsupportedFormat, lambda batch: changed(batch, 16, b"\x00", crc=False)),
    (CorruptBatch, lambda batch: changed(batch, 17, b"\x00\x00\x00\x00", crc=False)),
    (InvalidRecord, lambda batch: changed(batch, 23, b"\x00\x00\x00\x09")),
    (BatchTooLarge, lambda batch: batch),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
def test_of_several_faults_the_first_in_kafkas_order_is_answered(first: int) -> None:
    batch = at(2**60)
    for _, fault in reversed(FAULTS[first:]):
        batch = fault(batch)
    with pytest.raises(RopewalkError) as caught:
        validate_produced(memoryview(batch), Rules(bytes_max=10), NOW_MS)
    assert type(caught.value) is FAULTS[first][0]


@given(st.sampled_from(Codec), st.booleans(), st.data())
def test_any_change_to_a_batch_is_detected_or_harmless(
    codec: Codec, compacted: bool, data: st.DataObject
) -> None:
    """Harmless are the two fields a broker overwrites, the base offset and the leader epoch."""
    batch = build(KEYED, codec=codec)
    mutant = bytearray(batch)
    for _ in range(data.draw(st.integers(1, 3))):
        mutant[data.draw(st.integers(0, len(mutant) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        validate_produced(memoryview(mutant), COMPACTED if compacted else PLAIN, NOW_MS)
    except RopewalkError:
        return
    assert mutant[16:] == batch[16:]
    assert mutant[:12] == batch[:12]


@given(st.binary(max_size=200))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(RopewalkError):
        validate_produced(memoryview(noise), COMPACTED, NOW_MS)


@given(st.sampled_from(Codec), st.sampled_from(Codec), st.booleans())
def test_a_topic_with_its_own_codec_stores_the_same_records_in_it(
    sent: Codec, stored: Codec, append_time: bool
) -> None:
    rules = Rules(
        bytes_max=10_000,
        compression=stored,
        timestamp_type=TimestampType.APPEND if append_time else TimestampType.CREATE,
    )
    batch = memoryview(
        build(KEYED, codec=sent, producer_id=ProducerId(3), producer_epoch=ProducerEpoch(1), base_sequence=8)
    )
    header = validate_produced(batch, rules, NOW_MS)
    assert rules.rewrites
    rewritten, rewritten_header = conform(batch, header, rules, NOW_MS + 7)
    assert rewritten_header == decode_header(rewritten)
    assert rewritten_header.codec is stored
    assert rewritten_header.size_bytes == len(rewritten)
    assert verify_crc(rewritten)
    assert (rewritten_header.producer_id, rewritten_header.base_sequence) == (3, 8)
    opened = decode_records(rewritten)
    assert [(record.key, record.value) for record in opened] == [
        (record.key, record.value) for record in KEYED
    ]
    assert {record.timestamp for record in opened} == {NOW_MS + 7 if append_time else NOW_MS}


def test_a_batch_in_the_topics_codec_is_passed_on_without_a_copy() -> None:
    batch = memoryview(build(KEYED, codec=Codec.LZ4))
    rules = Rules(bytes_max=10_000, compression=Codec.LZ4)
    kept, _ = conform(batch, decode_header(batch), rules, NOW_MS)
    assert kept is batch


def test_a_batch_that_the_topics_codec_makes_too_large_is_refused() -> None:
    batch = memoryview(build([Record(timestamp=NOW_MS, value=bytes(5_000))], codec=Codec.GZIP))
    rules = Rules(bytes_max=1_000, compression=Codec.NONE)
    header = validate_produced(batch, rules, NOW_MS)
    with pytest.raises(BatchTooLarge):
        conform(batch, header, rules, NOW_MS)


def test_a_batch_that_cannot_be_opened_is_not_recompressed() -> None:
    batch = changed(build(KEYED), 22, bytes([Codec.GZIP]))
    assert len(batch) > HEADER_BYTES
    rules = Rules(bytes_max=10_000, compression=Codec.ZSTD)
    header = validate_produced(memoryview(batch), rules, NOW_MS)
    with pytest.raises(InvalidRecord):
        conform(memoryview(batch), header, rules, NOW_MS)
