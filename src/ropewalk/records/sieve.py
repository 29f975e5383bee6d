"""A batch as compaction sees it: whose keys are in it, and what is left of it when some records go.

What a reader could get wrong
    A batch keeps its base offset and its last offset whatever it loses, and with them its producer's sequences. The
    records that stay keep their bytes; deltas count from the same base.
    Where a delete horizon is set, the base timestamp becomes the horizon (KIP-534). Timestamp deltas count from it,
    so every record's delta is written anew, and readers see the same times as before.
    A batch without records claims no timestamp: nothing in it can be found by time.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import NO_PRODUCER
from ropewalk.base.limits import BATCH_OPENED_BYTES_MAX, BATCH_RECORDS_MAX
from ropewalk.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
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
from ropewalk.records.compression import compress, decompress
from ropewalk.records.record import TIMESTAMP_MAX, TIMESTAMP_NONE, decode_varint, encode_varint

LAST_OFFSET_DELTA_MAX: Final = 2**31 - 1

_NO_PRODUCER_EPOCH: Final = -1


class Entry(Struct, frozen=True, gc=False):
    """One record: what compaction decides by, and where its bytes are."""

    offset: int
    key: bytes | None
    is_tombstone: bool
    timestamp_delta: int
    start: int
    """Where the record begins in the opened batch, with its length."""

    rest: int
    """Where what follows its timestamp begins."""

    end: int


class OpenedBatch(Struct, frozen=True):
    header: BatchHeader
    payload: bytes
    entries: list[Entry]


def open_batch(batch: memoryview) -> OpenedBatch:
    """The records of one whole batch, decompressed. The CRC is not checked here.

    Refuses what cannot be read with `CorruptBatch`, a codec that does not exist with `UnsupportedCompression`.
    """
    header = decode_header(batch)
    if header.record_count > BATCH_RECORDS_MAX:
        raise CorruptBatch(f"the batch claims {header.record_count} records, {BATCH_RECORDS_MAX} are allowed")
    payload = decompress(header.codec, batch[HEADER_BYTES:], bytes_max=BATCH_OPENED_BYTES_MAX)
    entries: list[Entry] = []
    position = 0
    try:
        for _ in range(header.record_count):
            entry = _entry_at(payload, position, header)
            entries.append(entry)
            position = entry.end
    except IndexError:
        raise CorruptBatch(f"the batch ends inside record {len(entries)} of {header.record_count}") from None
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes follow record {header.record_count}, the last")
    return OpenedBatch(header, payload, entries)


def rebuild(opened: OpenedBatch, kept: Sequence[Entry], *, delete_horizon_ms: int | None = None) -> bytearray:
    """The same batch with only the records in `kept`, at least one, compressed as it was.

    With `delete_horizon_ms` it says from when on its tombstones may go.
    """
    assert kept
    header, payload = opened.header, opened.payload
    base_timestamp, attributes = header.base_timestamp, header.attributes
    if delete_horizon_ms is None:
        records = b"".join([payload[entry.start : entry.end] for entry in kept])
    else:
        shift = base_timestamp - delete_horizon_ms
        records = b"".join([_shifted(payload, entry, shift) for entry in kept])
        base_timestamp, attributes = delete_horizon_ms, attributes | DELETE_HORIZON
    max_timestamp = header.max_timestamp
    if not header.uses_append_time:
        max_timestamp = max(header.base_timestamp + entry.timestamp_delta for entry in kept)
    return _assemble(
        header,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(kept),
        stored=compress(header.codec, records),
    )


def emptied(header: BatchHeader) -> bytearray:
    """The batch without any record: it keeps its producer's place.

    It is part of no transaction any more. Otherwise one would begin with it whose marker may be gone.
    """
    return _assemble(
        header,
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON | TRANSACTIONAL),
        base_timestamp=TIMESTAMP_NONE,
        max_timestamp=TIMESTAMP_NONE,
        record_count=0,
        stored=b"",
    )


def placeholder(*, base_offset: int, end_offset: int, leader_epoch: int) -> bytearray:
    """A batch of nobody and with nothing in it, which takes up the offsets of batches that are gone."""
    assert 0 < end_offset - base_offset <= LAST_OFFSET_DELTA_MAX + 1
    batch = bytearray(
        HEADER_LAYOUT.pack(
            base_offset,
            HEADER_BYTES - PREFIX_BYTES,
            leader_epoch,
            MAGIC,
            0,
            0,
            end_offset - base_offset - 1,
            TIMESTAMP_NONE,
            TIMESTAMP_NONE,
            NO_PRODUCER,
            _NO_PRODUCER_EPOCH,
            SEQUENCE_NONE,
            0,
        )
    )
    stamp_crc(memoryview(batch))
    return batch


def is_placeholder(header: BatchHeader) -> bool:
    return header.record_count == 0 and header.producer_id == NO_PRODUCER and not header.is_control


def _entry_at(payload: bytes, position: int, header: BatchHeader) -> Entry:
    """Raises `IndexError` at the end of the payload."""
    length, fields = decode_varint(payload, position)
    end = fields + length
    if length < 0 or end > len(payload):
        raise CorruptBatch(f"a record of {length} bytes does not fit the {len(payload) - fields} left")
    timestamp_delta, rest = decode_varint(payload, fields + 1)
    timestamp = header.base_timestamp + timestamp_delta
    if not -TIMESTAMP_MAX <= timestamp <= TIMESTAMP_MAX:
        raise CorruptBatch(f"a record's timestamp is {timestamp}")
    offset_delta, at = decode_varint(payload, rest)
    if not 0 <= offset_delta <= header.last_offset_delta:
        raise CorruptBatch(f"offset delta {offset_delta} is not within 0 to {header.last_offset_delta}")
    key_bytes, at = decode_varint(payload, at)
    key = None
    if key_bytes >= 0:
        key = payload[at : at + key_bytes]
        at += key_bytes
    if key_bytes < -1 or at >= end:
        raise CorruptBatch(f"a key of {key_bytes} bytes does not fit its record")
    value_bytes, at = decode_varint(payload, at)
    if value_bytes < -1 or at + max(value_bytes, 0) >= end:
        raise CorruptBatch(f"a value of {value_bytes} bytes does not fit its record")
    return Entry(
        header.base_offset + offset_delta, key, value_bytes == -1, timestamp_delta, position, rest, end
    )


def _shifted(payload: bytes, entry: Entry, shift: int) -> bytes:
    body = b"".join((b"\x00", encode_varint(entry.timestamp_delta + shift), payload[entry.rest : entry.end]))
    return encode_varint(len(body)) + body


def _assemble(
    header: BatchHeader,
    *,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    record_count: int,
    stored: bytes,
) -> bytearray:
    batch = bytearray(
        HEADER_LAYOUT.pack(
            header.base_offset,
            HEADER_BYTES - PREFIX_BYTES + len(stored),
            header.leader_epoch,
            MAGIC,
            0,
            attributes,
            header.last_offset_delta,
            base_timestamp,
            max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            record_count,
        )
    )
    batch += stored
    stamp_crc(memoryview(batch))
    return batch
