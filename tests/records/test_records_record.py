"""Records in and out of batches: round trips, hostile framing, and agreement with two other implementations."""

from collections.abc import Callable
from typing import Protocol

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import Offset, ProducerEpoch, ProducerId
from ropewalk.records.batch import HEADER_BYTES, decode_header, stamp_crc, verify_crc
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build, build_keyed, decode_records

fields = st.one_of(st.none(), st.binary(max_size=200))
headers = st.lists(st.tuples(st.text(max_size=10), fields), max_size=3).map(tuple)
timestamps = st.integers(0, 2**50)
records = st.lists(
    st.builds(Record, timestamp=timestamps, key=fields, value=fields, headers=headers),
    min_size=1,
    max_size=20,
)


def numbered(given_records: list[Record], base_offset: int = 0) -> list[Record]:
    return [
        Record(Offset(base_offset + index), record.timestamp, record.key, record.value, record.headers)
        for index, record in enumerate(given_records)
    ]


@given(records, st.sampled_from(Codec), st.integers(0, 2**60))
def test_records_come_back_from_a_batch_as_they_went_in(
    sent: list[Record], codec: Codec, base_offset: int
) -> None:
    batch = build(sent, codec=codec, base_offset=Offset(base_offset))
    header = decode_header(batch)
    assert verify_crc(memoryview(batch))
    assert (header.size_bytes, header.codec, header.record_count) == (len(batch), codec, len(sent))
    assert header.end_offset == base_offset + len(sent)
    assert header.max_timestamp == max(record.timestamp for record in sent)
    assert decode_records(batch) == numbered(sent, base_offset)


class ForeignRecord(Protocol):
    """What aiokafka and kafka-python agree to call the parts of a record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def from_foreign(record: ForeignRecord) -> Record:
    return Record(Offset(record.offset), record.timestamp, record.key, record.value, tuple(record.headers))


def built_by_aiokafka(sent: list[Record], codec: Codec) -> bytes:
    builder = AiokafkaBuilder(
        magic=2, compression_type=int(codec), is_transactional=0, producer_id=9, producer_epoch=2,
        base_sequence=4, batch_size=1 << 20,
    )  # fmt: skip
    for index, record in enumerate(sent):
        builder.append(
            index,
            timestamp=record.timestamp,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
        )
    return bytes(builder.build())


def built_by_kafka_python(sent: list[Record], codec: Codec) -> bytes:
    builder = KafkaPythonBuilder(
        magic=2, compression_type=int(codec), is_transactional=False, producer_id=9, producer_epoch=2,
        base_sequence=4, batch_size=1 << 20,
    )  # fmt: skip
    for index, record in enumerate(sent):
        builder.append(index, record.timestamp, record.key, record.value, list(record.headers))
    return bytes(builder.build())


def read_by_aiokafka(batch: bytes) -> list[Record]:
    foreign = AiokafkaBatch(batch)
    assert foreign.validate_crc()
    return [from_foreign(record) for record in foreign]


def read_by_kafka_python(batch: bytes) -> list[Record]:
    foreign = KafkaPythonBatch(batch)
    assert foreign.validate_crc()
    return [from_foreign(record) for record in foreign]


# kafka-python compresses snappy and zstd with libraries of its own, which are not ours to install.
KAFKA_PYTHON_CODECS = [Codec.NONE, Codec.GZIP, Codec.LZ4]


@pytest.mark.parametrize(
    ("builder", "codec"),
    [(built_by_aiokafka, codec) for codec in Codec]
    + [(built_by_kafka_python, codec) for codec in KAFKA_PYTHON_CODECS],
)
@settings(max_examples=40)
@given(sent=records)
def test_batches_of_other_builders_are_read(
    builder: Callable[[list[Record], Codec], bytes], codec: Codec, sent: list[Record]
) -> None:
    batch = builder(sent, codec)
    header = decode_header(batch)
    assert verify_crc(memoryview(batch))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 4)
    assert decode_records(batch) == numbered(sent)
    if not header.is_compressed:
        ours = build(sent, producer_id=ProducerId(9), producer_epoch=ProducerEpoch(2), base_sequence=4)
        # Producers leave different values in the leader epoch, which is the broker's to write.
        assert bytes(ours[:12] + ours[16:]) == batch[:12] + batch[16:]


@pytest.mark.parametrize(
    ("reader", "codec"),
    [(read_by_aiokafka, codec) for codec in Codec]
    + [(read_by_kafka_python, codec) for codec in KAFKA_PYTHON_CODECS],
)
@settings(max_examples=40)
@given(sent=records)
def test_our_batches_are_read_by_others(
    reader: Callable[[bytes], list[Record]], codec: Codec, sent: list[Record]
) -> None:
    assert reader(bytes(build(sent, codec=codec))) == numbered(sent)


def batch_around(payload: bytes, *, count: int = 1, last_offset_delta: int = 0) -> bytearray:
    """A batch with a true CRC around bytes that need not be records."""
    batch = build([Record(value=b"")])[:HEADER_BYTES] + payload
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[23:27] = last_offset_delta.to_bytes(4, "big", signed=True)
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    stamp_crc(memoryview(batch))
    return batch


GOOD = bytes.fromhex("10000000026b027600")


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        pytest.param(b"", 1, id="no record where one is promised"),
        pytest.param(GOOD, 2, id="one record where two are promised"),
        pytest.param(GOOD, 0, id="one record where none is promised"),
        pytest.param(GOOD, 2**31 - 1, id="one record where two thousand million are promised"),
        pytest.param(GOOD + b"\x00", 1, id="bytes after the last"),
        pytest.param(bytes.fromhex("7e000000026b027600"), 1, id="length beyond the batch"),
        pytest.param(bytes.fromhex("01000000026b027600"), 1, id="negative length"),
        pytest.param(bytes.fromhex("0e000000026b0276"), 1, id="no room for the header count"),
        pytest.param(bytes.fromhex("10000002026b027600"), 1, id="offset delta beyond the header's"),
        pytest.param(bytes.fromhex("10000001026b027600"), 1, id="offset delta -1"),
        pytest.param(bytes.fromhex("100000000e6b027600"), 1, id="key beyond the record"),
        pytest.param(bytes.fromhex("10000000036b027600"), 1, id="key length -2"),
        pytest.param(bytes.fromhex("10000000026b0e7600"), 1, id="value beyond the record"),
        pytest.param(bytes.fromhex("10000000026b027602"), 1, id="a header beyond the record"),
        pytest.param(bytes.fromhex("10000000026b027601"), 1, id="header count -1"),
        pytest.param(bytes.fromhex("120000000101020101"), 1, id="a header without a key"),
        pytest.param(bytes.fromhex("12000000026b02760000"), 1, id="record longer than its fields"),
        pytest.param(b"\xff" * 30, 1, id="a number without end"),
    ],
)
def test_framing_that_does_not_hold_together_is_corrupt(payload: bytes, count: int) -> None:
    with pytest.raises(CorruptBatch):
        decode_records(batch_around(payload, count=count))


def test_a_header_key_that_is_not_utf8_does_not_hide_the_record() -> None:
    payload = bytes.fromhex("0e000000010102" + "02ff" + "01")
    payload = bytes([2 * (len(payload) - 1)]) + payload[1:]
    assert decode_records(batch_around(payload)) == [Record(timestamp=-1, headers=(("�", None),))]


def test_a_compacted_batch_keeps_the_offsets_of_what_is_left() -> None:
    payload = bytes.fromhex("10000004026b027600")
    batch = batch_around(payload, last_offset_delta=7)
    assert [record.offset for record in decode_records(batch)] == [2]
    assert decode_header(batch).end_offset == 8


def test_a_batch_is_given_whole_and_alone() -> None:
    batch = build([Record(value=b"v")])
    for wrong in (batch[:-1], batch + b"\x00"):
        with pytest.raises(CorruptBatch):
            decode_records(wrong)


@given(st.binary(max_size=200), st.integers(-1, 50), st.integers(-1, 50))
def test_noise_as_records_is_corrupt_or_within_the_promises_of_the_header(
    noise: bytes, count: int, last_offset_delta: int
) -> None:
    try:
        opened = decode_records(batch_around(noise, count=count, last_offset_delta=last_offset_delta))
    except CorruptBatch:
        return
    assert len(opened) == max(0, count)
    assert all(record.offset <= last_offset_delta for record in opened)


@given(
    st.lists(st.tuples(st.binary(max_size=300), st.none() | st.binary(max_size=300)), min_size=1, max_size=80)
)
def test_keys_and_values_alone_are_built_into_the_same_bytes(
    entries: list[tuple[bytes, bytes | None]],
) -> None:
    records = [Record(timestamp=1000, key=key, value=value) for key, value in entries]
    assert build_keyed(entries, timestamp=1000) == build(records)
    producer_id, producer_epoch = ProducerId(7), ProducerEpoch(3)
    assert build_keyed(
        entries, timestamp=1000, producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True
    ) == build(records, producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True)
