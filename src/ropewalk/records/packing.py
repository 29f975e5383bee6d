"""Many records into one batch, in one go: what a producer does for every batch it sends.

`record.build` takes `Record`s and is for those who make a few. Here a record is a bare tuple, and the numbers that most
records need are looked up instead of computed.

What a reader could get wrong
    A batch that was packed can be given another producer id, epoch and sequence (`restamp`): they lie in the header, so
    that the records need not be compressed again.
"""

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from ropewalk.base.ids import NO_PRODUCER, ProducerEpoch, ProducerId
from ropewalk.records.batch import (
    HEADER_BYTES,
    HEADER_LAYOUT,
    MAGIC,
    PREFIX_BYTES,
    SEQUENCE_NONE,
    TRANSACTIONAL,
    stamp_crc,
)
from ropewalk.records.codec import Codec
from ropewalk.records.compression import compress
from ropewalk.records.record import encode_varint

Headers = tuple[tuple[str, bytes | None], ...]
Entry = tuple[bytes | None, bytes | None, int, Headers]
"""Key, value, timestamp, headers."""

ENTRY_OVERHEAD_BYTES: Final = 32
"""More than a record's own lengths, deltas and attributes ever take, so that batches stay below their limit."""

_NO_EPOCH: Final = ProducerEpoch(-1)
_PRODUCER_POSITION: Final = 43
_ATTRIBUTES_LOW_POSITION: Final = 22
_pack_producer: Final = Layout(">qhi").pack_into

_SHORT_COUNT: Final = 1 << 13
_SHORT: Final = tuple(map(encode_varint, range(_SHORT_COUNT)))
"""Lengths and deltas of most records."""
_NULL: Final = b"\x01"


def entry_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """No less than the record takes uncompressed."""
    size = ENTRY_OVERHEAD_BYTES + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += 4 * len(name) + (len(content) if content else 0) + ENTRY_OVERHEAD_BYTES
    return size


def pack(
    entries: Sequence[Entry],
    *,
    codec: Codec,
    producer_id: ProducerId = NO_PRODUCER,
    producer_epoch: ProducerEpoch = _NO_EPOCH,
    base_sequence: int = SEQUENCE_NONE,
    is_transactional: bool = False,
) -> bytearray:
    """One batch of at least one record. The offsets count from 0: the broker decides them."""
    assert entries
    base_timestamp = max_timestamp = entries[0][2]
    parts: list[bytes] = []
    delta_at, delta = base_timestamp, b"\x00"
    packed_headers: Headers = ()
    rest = b"\x00"
    for number, (key, value, timestamp, headers) in enumerate(entries):
        if timestamp != delta_at:  # records of one millisecond come in a row
            delta_at, delta = timestamp, encode_varint(timestamp - base_timestamp)
            if timestamp > max_timestamp:
                max_timestamp = timestamp
        offset = _SHORT[number] if number < _SHORT_COUNT else encode_varint(number)
        if key is None:
            key_length, key = _NULL, b""
        else:
            length = len(key)
            key_length = _SHORT[length] if length < _SHORT_COUNT else encode_varint(length)
        if value is None:
            value_length, value = _NULL, b""
        else:
            length = len(value)
            value_length = _SHORT[length] if length < _SHORT_COUNT else encode_varint(length)
        if headers is not packed_headers:  # those of one sender are often the very same
            packed_headers, rest = headers, _pack_headers(headers)
        length = (
            1 + len(delta) + len(offset) + len(key_length) + len(key) + len(value_length) + len(value)
        ) + len(rest)
        parts += (
            _SHORT[length] if length < _SHORT_COUNT else encode_varint(length),
            b"\x00",
            delta,
            offset,
            key_length,
            key,
            value_length,
            value,
            rest,
        )
    stored = b"".join(parts) if codec is Codec.NONE else compress(codec, b"".join(parts))
    batch = bytearray(
        HEADER_LAYOUT.pack(
            0,
            HEADER_BYTES - PREFIX_BYTES + len(stored),
            -1,
            MAGIC,
            0,
            codec | (TRANSACTIONAL if is_transactional else 0),
            len(entries) - 1,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(entries),
        )
    )
    batch += stored
    stamp_crc(memoryview(batch))
    return batch


def restamp(
    batch: bytearray | memoryview,
    *,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    base_sequence: int,
) -> None:
    """Give the batch another identity, in place."""
    _pack_producer(batch, _PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    stamp_crc(memoryview(batch))


def mark_transactional(batch: bytearray | memoryview) -> None:
    """Make it part of a transaction. The CRC is wrong until the batch is given its identity by `restamp`."""
    batch[_ATTRIBUTES_LOW_POSITION] |= TRANSACTIONAL


def _pack_headers(headers: Headers) -> bytes:
    parts = [encode_varint(len(headers))]
    for name, content in headers:
        encoded = name.encode()
        parts += (encode_varint(len(encoded)), encoded)
        parts += (_NULL,) if content is None else (encode_varint(len(content)), content)
    return b"".join(parts)
