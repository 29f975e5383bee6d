"""The records inside a batch: open one, build one.

A record is a length and then, in varints, what differs from the header: timestamp delta, offset delta, key,
value, headers. Numbers are zigzag varints throughout; a length of −1 is null.

What a reader could get wrong
    Opening is for consumers and for topics whose rules look at records. On its way through a broker a batch
    stays shut.
    `iterate_records` holds one opened batch and one record at a time; `decode_records` all of them, which for
    a hostile batch is many small objects. Brokers use the former.
    A batch that was compacted has gaps in its offsets and fewer records than offsets.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from typing_extensions import Buffer

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import NO_PRODUCER, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from ropewalk.base.limits import BATCH_OPENED_BYTES_MAX
from ropewalk.records.batch import (
    CONTROL,
    HEADER_BYTES,
    HEADER_LAYOUT,
    MAGIC,
    PREFIX_BYTES,
    SEQUENCE_NONE,
    TRANSACTIONAL,
    BatchHeader,
    decode_header,
    stamp_crc,
)
from ropewalk.records.codec import Codec
from ropewalk.records.compression import compress, decompress

TIMESTAMP_NONE: Final = -1
TIMESTAMP_MAX: Final = 2**62
"""Deltas can encode times that no field can carry. Any two up to this one differ by what 64 bits can say."""

RECORD_BYTES_MIN: Final = 7
"""Length, attributes, two deltas, no key, no value, no headers."""


_FIRST_OFFSET: Final = Offset(0)
_NO_LEADER_EPOCH: Final = LeaderEpoch(-1)
_NO_PRODUCER_EPOCH: Final = ProducerEpoch(-1)
_VARINT_BYTES_MAX: Final = 10


class Record(Struct, frozen=True, gc=False):
    """One message. `value` None is a tombstone on a compacted topic."""

    offset: Offset = _FIRST_OFFSET
    timestamp: int = TIMESTAMP_NONE
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def decode_records(batch: Buffer, *, bytes_max: int = BATCH_OPENED_BYTES_MAX) -> list[Record]:
    """All records of one whole batch; refuses as `iterate_records` does."""
    header, payload = _opened(batch, bytes_max)
    return _decode_all(payload, header)


def iterate_records(batch: Buffer, *, bytes_max: int = BATCH_OPENED_BYTES_MAX) -> Iterator[Record]:
    """The records of one whole batch, in order. The CRC is not checked here.

    Refuses a batch that opens to more than `bytes_max`, records that do not fill it exactly, a count other than
    the header's and offsets beyond the header's, all with `CorruptBatch`; a codec that does not exist with
    `UnsupportedCompression`.
    """
    header, payload = _opened(batch, bytes_max)
    return _decode_payload(payload, header)


def build(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    base_offset: Offset = _FIRST_OFFSET,
    leader_epoch: LeaderEpoch = _NO_LEADER_EPOCH,
    producer_id: ProducerId = NO_PRODUCER,
    producer_epoch: ProducerEpoch = _NO_PRODUCER_EPOCH,
    base_sequence: int = SEQUENCE_NONE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytearray:
    """One batch of at least one record, numbered on from `base_offset` whatever offsets the records carry."""
    assert records
    base_timestamp = max_timestamp = records[0].timestamp
    parts: list[bytes] = []
    for offset_delta, record in enumerate(records):
        timestamp = record.timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        body = _encode_body(record, offset_delta, timestamp - base_timestamp)
        parts.append(encode_varint(len(body)))
        parts.append(body)
    return _seal(
        compress(codec, b"".join(parts)),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=codec | (TRANSACTIONAL if is_transactional else 0) | (CONTROL if is_control else 0),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )


def build_keyed(
    entries: Sequence[tuple[bytes, bytes | None]],
    *,
    timestamp: int,
    producer_id: ProducerId = NO_PRODUCER,
    producer_epoch: ProducerEpoch = _NO_PRODUCER_EPOCH,
    is_transactional: bool = False,
) -> bytearray:
    """As `build`, of keys and values alone that share a timestamp, at two thirds of the cost."""
    assert entries
    parts: list[bytes] = []
    for offset_delta, (key, value) in enumerate(entries):
        ending = _NULL_AND_NO_HEADERS if value is None else b"%b%b\x00" % (encode_varint(len(value)), value)
        # Neither attributes nor a timestamp that differs.
        body = b"\x00\x00%b%b%b%b" % (encode_varint(offset_delta), encode_varint(len(key)), key, ending)
        parts.append(encode_varint(len(body)))
        parts.append(body)
    return _seal(
        b"".join(parts),
        base_offset=_FIRST_OFFSET,
        leader_epoch=_NO_LEADER_EPOCH,
        attributes=TRANSACTIONAL if is_transactional else 0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=SEQUENCE_NONE,
        record_count=len(entries),
    )


def _seal(
    stored: bytes,
    *,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    base_sequence: int,
    record_count: int,
) -> bytearray:
    """The records, compressed by now, behind their header."""
    batch = bytearray(
        HEADER_LAYOUT.pack(
            base_offset,
            HEADER_BYTES - PREFIX_BYTES + len(stored),
            leader_epoch,
            MAGIC,
            0,
            attributes,
            record_count - 1,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        )
    )
    batch += stored
    stamp_crc(memoryview(batch))
    return batch


def _opened(batch: Buffer, bytes_max: int) -> tuple[BatchHeader, bytes]:
    header = decode_header(batch)
    view = memoryview(batch)
    if view.nbytes != header.size_bytes:
        raise CorruptBatch(f"a batch of {header.size_bytes} bytes was given as {view.nbytes}")
    return header, decompress(header.codec, view[HEADER_BYTES:], bytes_max=bytes_max)


def _decode_all(payload: bytes, header: BatchHeader) -> list[Record]:
    """As `_decode_payload`, at a third of the cost: what most records are is read without a call, and others by `decode_one`.

    Most have the time of the first or a little later, lengths of up to two bytes, no key, and headers as a record before them.
    """
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    if header.uses_append_time or not 0 <= base_timestamp < TIMESTAMP_MAX - 0x40:
        return list(_decode_payload(payload, header))
    records: list[Record] = []
    known: dict[bytes, tuple[tuple[str, bytes | None], ...]] = {b"\x00": ()}
    offset_delta_max, size, position = header.last_offset_delta, len(payload), 0
    for index in range(header.record_count):
        try:
            length, begin = payload[position], position + 1
            if length >= 0x80:
                length, begin = length & 0x7F | payload[begin] << 7, begin + 1
            end = begin + (length >> 1)
            time_delta, offset_delta, begin = payload[begin + 1], payload[begin + 2], begin + 3
            if offset_delta >= 0x80:
                offset_delta, begin = offset_delta & 0x7F | payload[begin] << 7, begin + 1
            key_length, value_length, begin = payload[begin], payload[begin + 1], begin + 2
            if value_length >= 0x80:
                value_length, begin = value_length & 0x7F | payload[begin] << 7, begin + 1
        except IndexError:
            record, position = _decode_or_refuse(payload, position, header, index)
            records.append(record)
            continue
        stop = begin + (value_length >> 1)
        is_usual = not (
            (length | value_length | time_delta | offset_delta) & 1  # negative, as the length of a null
            or length >= 0x4000  # there is a third byte
            or value_length >= 0x4000
            or offset_delta >= 0x4000
            or time_delta >= 0x80  # there is a second byte
            or offset_delta >> 1 > offset_delta_max
            or key_length != _NULL_LENGTH
            or end > size
        )
        headers = known.get(payload[stop:end]) if is_usual else None
        if headers is None:
            record, position = _decode_or_refuse(payload, position, header, index)
            if is_usual:
                known[payload[stop:end]] = record.headers
        else:
            position = end
            offset = Offset(base_offset + (offset_delta >> 1))
            record = Record(offset, base_timestamp + (time_delta >> 1), None, payload[begin:stop], headers)
        records.append(record)
    if position != size:
        raise CorruptBatch(f"{size - position} bytes follow record {header.record_count}, the last")
    return records


def _decode_or_refuse(payload: bytes, position: int, header: BatchHeader, index: int) -> tuple[Record, int]:
    try:
        return decode_one(payload, position, header)
    except IndexError:
        raise CorruptBatch(f"the batch ends inside record {index} of {header.record_count}") from None


def _decode_payload(payload: bytes, header: BatchHeader) -> Iterator[Record]:
    position = 0
    for index in range(header.record_count):
        record, position = _decode_or_refuse(payload, position, header, index)
        yield record
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes follow record {header.record_count}, the last")


def decode_one(payload: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    """The record that begins at `position`, and where it ends. Raises `IndexError` where the payload ends inside it."""
    length, position = decode_varint(payload, position)
    end = position + length
    if length < 0 or end > len(payload):
        raise CorruptBatch(f"a record of {length} bytes does not fit the {len(payload) - position} left")
    position += 1  # The record's attributes: a byte in which no bit has a meaning.
    timestamp_delta, position = decode_varint(payload, position)
    offset_delta, position = decode_varint(payload, position)
    if not 0 <= offset_delta <= header.last_offset_delta:
        raise CorruptBatch(f"offset delta {offset_delta} is not within 0 to {header.last_offset_delta}")
    key, position = _decode_bytes(payload, position, end)
    value, position = _decode_bytes(payload, position, end)
    header_count, position = decode_varint(payload, position)
    if not 0 <= header_count <= end - position:
        raise CorruptBatch(
            f"{header_count} headers do not fit the {end - position} bytes left of their record"
        )
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if header_count:
        headers, position = _decode_headers(payload, position, end, header_count)
    if position != end:
        raise CorruptBatch(f"a record's fields end {abs(end - position)} bytes away from its end")
    timestamp = header.base_timestamp + timestamp_delta
    if not -TIMESTAMP_MAX <= timestamp <= TIMESTAMP_MAX:
        raise CorruptBatch(f"a record's timestamp is {timestamp}")
    if header.uses_append_time:
        timestamp = header.max_timestamp
    return Record(Offset(header.base_offset + offset_delta), timestamp, key, value, headers), end


def _decode_headers(
    payload: bytes, position: int, end: int, count: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _decode_bytes(payload, position, end)
        if name is None:
            raise CorruptBatch("a record header has no key")
        value, position = _decode_bytes(payload, position, end)
        # Malformed names are shown with replacement characters, as Java clients show them.
        headers.append((name.decode(errors="replace"), value))
    return tuple(headers), position


def _decode_bytes(payload: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = decode_varint(payload, position)
    if length == -1:
        return None, position
    stop = position + length
    if length < 0 or stop > end:
        raise CorruptBatch(f"a field of {length} bytes does not fit the {end - position} left of its record")
    return payload[position:stop], stop


def decode_varint(payload: bytes, position: int) -> tuple[int, int]:
    """The number and the position after it. Raises `IndexError` at the end of the payload."""
    byte = payload[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    number, shift = byte & 0x7F, 7
    for following in range(position + 1, position + _VARINT_BYTES_MAX):
        byte = payload[following]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), following + 1
        shift += 7
    raise CorruptBatch(f"a number goes on after {_VARINT_BYTES_MAX} bytes")


def _encode_body(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    key, value, headers = record.key, record.value, record.headers
    parts = [
        b"\x00",
        encode_varint(timestamp_delta),
        encode_varint(offset_delta),
        _VARINT_NULL if key is None else encode_varint(len(key)),
        key or b"",
        _VARINT_NULL if value is None else encode_varint(len(value)),
        value or b"",
        encode_varint(len(headers)),
    ]
    for name, content in headers:
        encoded = name.encode()
        parts += (encode_varint(len(encoded)), encoded)
        parts += (_VARINT_NULL,) if content is None else (encode_varint(len(content)), content)
    return b"".join(parts)


def encode_varint(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    if number < _VARINTS_SHORT_COUNT:
        return _VARINTS_SHORT[number]
    return _encode_varint(number)


def _encode_varint(number: int) -> bytes:
    output = bytearray()
    while number >= 0x80:
        output.append(number & 0x7F | 0x80)
        number >>= 7
    output.append(number)
    return bytes(output)


_VARINTS_SHORT_COUNT: Final = 0x400
"""Enough for the lengths of most keys and of small values."""
_VARINTS_SHORT: Final = tuple(map(_encode_varint, range(_VARINTS_SHORT_COUNT)))
_VARINT_NULL: Final = b"\x01"
_NULL_LENGTH: Final = 0x01
_NULL_AND_NO_HEADERS: Final = b"\x01\x00"
