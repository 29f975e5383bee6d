"""Whether a producer's batch may enter a log.

The checks and their order are Kafka's, so that a batch with two faults gets the answer its client expects:
exactly one batch, format, CRC, offsets, kind, size, timestamps, compression, keys.

What a reader could get wrong
    On a topic without special rules only the header and the CRC are looked at, some two microseconds. Records
    are opened where a rule is about records, or where the topic wants every record looked at (`records.validate=full`):
    `Rules.opens_records` says so beforehand, because that is work for the disk pool and not for the event loop.
    Kafka looks at the timestamp of every record. Here the header's first and largest stand for them, unless a
    topic sets how old records may be: only then can a record in the middle matter.
    Nothing is changed here. `conform` turns a valid batch into what the topic stores.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import (
    BatchTooLarge,
    CorruptBatch,
    InvalidRecord,
    InvalidTimestamp,
    UnsupportedCompression,
)
from ropewalk.base.limits import BATCH_RECORDS_MAX
from ropewalk.records.batch import (
    APPEND_TIME,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    TRANSACTIONAL,
    BatchHeader,
    decode_header,
    verify_crc,
)
from ropewalk.records.codec import Codec
from ropewalk.records.inspection import inspect
from ropewalk.records.record import RECORD_BYTES_MIN, TIMESTAMP_NONE, Record, iterate_records

_PRODUCERS: Final = CODEC_MASK | APPEND_TIME | TRANSACTIONAL
"""Attributes that a producer may set. What no bit means today may mean something in a log that is kept."""

DURATION_UNBOUNDED_MS: Final = 2**63 - 1
"""Kafka's way of writing that a timestamp may be as far away as it likes."""


class TimestampType(StrEnum):
    """As spelled in the topic setting `message.timestamp.type`."""

    CREATE = "CreateTime"
    APPEND = "LogAppendTime"


class Rules(Struct, frozen=True, gc=False):
    """What one topic demands of a batch."""

    bytes_max: int
    timestamp_type: TimestampType = TimestampType.CREATE
    before_max_ms: int = DURATION_UNBOUNDED_MS
    """How far a record's timestamp may lie behind the broker's clock."""
    after_max_ms: int = 3_600_000
    """How far it may lie ahead."""
    checks_records: bool = False
    """Every batch is opened, and refused if it is not what its header says (`inspection.py`)."""
    keys_required: bool = False
    """The topic is compacted: a record without a key would have no place in it."""
    zstd_allowed: bool = True
    """The request is new enough for zstd (Produce v7)."""
    compression: Codec | None = None
    """The codec the topic stores; None keeps whatever the producer chose."""
    compression_level: int | None = None
    is_closed: bool = False
    """Clients may read the topic and must not write: it is the node that decides on every message. `Partition.prepare` looks at it."""

    @property
    def opens_records(self) -> bool:
        """Validating takes time in proportion to the records."""
        return self.checks_records or self.judges_records

    @property
    def judges_records(self) -> bool:
        """A record may be refused for what it says, and not only for not being one."""
        return self.keys_required or (
            self.before_max_ms != DURATION_UNBOUNDED_MS and self.timestamp_type is TimestampType.CREATE
        )

    @property
    def rewrites(self) -> bool:
        """A valid batch may still have to go through `conform` before it is written."""
        return self.compression is not None or self.timestamp_type is TimestampType.APPEND


def validate_produced(batch: memoryview, rules: Rules, now_ms: int) -> BatchHeader:
    """The header of the batch, if what a client sent for one partition may be appended as it is.

    Raises `UnsupportedFormat`, `CorruptBatch`, `InvalidRecord`, `BatchTooLarge`, `InvalidTimestamp` or
    `UnsupportedCompression`. An `InvalidRecord` for missing keys names all the records that lack one.
    """
    if not batch:
        raise InvalidRecord("there is no batch; one is needed for every partition")
    header = decode_header(batch)
    if header.size_bytes != len(batch):
        raise _not_one_batch(header, len(batch))
    if not verify_crc(batch):
        raise CorruptBatch("the batch does not match its CRC")
    if (
        not 1 <= header.record_count <= BATCH_RECORDS_MAX
        or header.last_offset_delta != header.record_count - 1
        or header.base_offset != 0
    ):
        raise _wrong_offsets(header)
    if (
        not header.attributes & CODEC_MASK
        and header.record_count * RECORD_BYTES_MIN > header.size_bytes - HEADER_BYTES
    ):
        raise InvalidRecord(
            f"{header.record_count} records do not fit into {header.size_bytes - HEADER_BYTES} bytes"
        )
    if header.attributes & ~_PRODUCERS:
        raise _not_a_producers(header)
    if header.producer_id >= 0:
        if header.base_sequence < 0 or header.producer_epoch < 0:
            raise InvalidRecord(f"producer {header.producer_id} gives no sequence or no epoch")
    elif header.is_transactional:
        raise InvalidRecord("a transactional batch needs a producer id")
    if header.size_bytes > rules.bytes_max:
        raise BatchTooLarge(f"the batch has {header.size_bytes} bytes, the topic takes {rules.bytes_max}")
    if rules.timestamp_type is TimestampType.CREATE:
        _check_timestamp(header.max_timestamp, rules, now_ms)
        _check_timestamp(header.base_timestamp, rules, now_ms)
    if header.attributes & CODEC_MASK >= Codec.ZSTD:
        _check_codec(header, rules)
    if rules.judges_records:
        _check_records(batch, rules, now_ms)
    elif rules.checks_records:
        inspect(batch, header)
    return header


def _not_a_producers(header: BatchHeader) -> InvalidRecord:
    if header.attributes & (CONTROL | DELETE_HORIZON):
        return InvalidRecord("control records and delete horizons are written by brokers only")
    return InvalidRecord("the batch has attributes that mean nothing yet")


def _check_timestamp(timestamp: int, rules: Rules, now_ms: int) -> None:
    if timestamp == TIMESTAMP_NONE:
        return
    if timestamp - now_ms > rules.after_max_ms:
        raise InvalidTimestamp(
            f"timestamp {timestamp} is {timestamp - now_ms} ms ahead, {rules.after_max_ms} allowed"
        )
    if now_ms - timestamp > rules.before_max_ms:
        raise InvalidTimestamp(
            f"timestamp {timestamp} is {now_ms - timestamp} ms old, {rules.before_max_ms} allowed"
        )


def _check_codec(header: BatchHeader, rules: Rules) -> None:
    if header.codec is Codec.ZSTD and not rules.zstd_allowed:
        raise UnsupportedCompression("zstd needs Produce v7 or newer")


def _check_records(batch: memoryview, rules: Rules, now_ms: int) -> None:
    keyless: list[int] = []
    for index, record in enumerate(_open(batch)):
        if record.offset != index:
            raise InvalidRecord(f"record {index} has offset delta {record.offset}", (index,))
        if rules.timestamp_type is TimestampType.CREATE:
            _check_timestamp(record.timestamp, rules, now_ms)
        if record.key is None:
            keyless.append(index)
    if keyless and rules.keys_required:
        raise InvalidRecord(
            f"{len(keyless)} records have no key, which a compacted topic needs", tuple(keyless)
        )


def _open(batch: memoryview) -> Iterator[Record]:
    """The bytes are those the client sent, so a fault inside is of its making and sending again is no cure."""
    try:
        yield from iterate_records(batch)
    except CorruptBatch as error:
        raise InvalidRecord(str(error)) from None


def _not_one_batch(header: BatchHeader, size: int) -> CorruptBatch | InvalidRecord:
    if header.size_bytes > size:
        return CorruptBatch(f"the batch claims {header.size_bytes} bytes, {size} were sent")
    return InvalidRecord(
        f"{size - header.size_bytes} bytes follow the batch; a partition takes one per request"
    )


def _wrong_offsets(header: BatchHeader) -> InvalidRecord:
    if header.record_count > BATCH_RECORDS_MAX:
        return InvalidRecord(f"the batch has {header.record_count} records, {BATCH_RECORDS_MAX} are allowed")
    return InvalidRecord(
        f"{header.record_count} records cannot have base offset {header.base_offset} "
        f"and last offset delta {header.last_offset_delta}"
    )
