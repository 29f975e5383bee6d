"""The header of a record batch: read it, check the batch against it, stamp it in place.

    position  field                    position  field
    0         base offset       i64    23        last offset delta   i32
    8         length            i32    27        base timestamp      i64
    12        leader epoch      i32    35        max timestamp       i64
    16        magic, always 2   i8     43        producer id         i64
    17        CRC32C            u32    51        producer epoch      i16
    21        attributes        i16    53        base sequence       i32
                                       57        record count        i32
                                       61        records, compressed as one block

What a reader could get wrong
    `length` counts from position 12 on; `BatchHeader.size_bytes` is the whole batch.
    The CRC covers everything from the attributes to the end. Base offset, length, leader epoch and magic lie
    outside it, which is why a broker can stamp the first and the third without looking at the rest.
    A header is only claims. `decode_header` believes none of them beyond what it needs to find the next batch.
"""

from collections.abc import Iterator
from struct import Struct as Layout
from struct import error as struct_error
from typing import Final

from crc32c import crc32c
from msgspec import Struct
from typing_extensions import Buffer

from ropewalk.base.errors import CorruptBatch, UnsupportedCompression, UnsupportedFormat
from ropewalk.base.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from ropewalk.records.codec import Codec

HEADER_BYTES: Final = 61
HEADER_LAYOUT: Final = Layout(">qiibIhiqqqhii")
PREFIX_BYTES: Final = 12
"""Base offset and length: what must be read to know how large the batch is."""

MAGIC: Final = 2
SEQUENCE_NONE: Final = -1
SEQUENCE_MAX: Final = 2**31 - 1

CODEC_MASK: Final = 0x07
APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

_CRC_POSITION: Final = 17
_COVERED_POSITION: Final = 21
_MAX_TIMESTAMP_POSITION: Final = 35

_unpack_header: Final = HEADER_LAYOUT.unpack_from
_unpack_crc: Final = Layout(">I").unpack_from
_pack_crc: Final = Layout(">I").pack_into
_unpack_attributes: Final = Layout(">h").unpack_from
_pack_attributes: Final = Layout(">h").pack_into
_pack_base_offset: Final = Layout(">q").pack_into
_pack_leader_epoch: Final = Layout(">i").pack_into
_pack_timestamp: Final = Layout(">q").pack_into
_unpack_timestamp: Final = Layout(">q").unpack_from


class BatchHeader(Struct, frozen=True, gc=False):
    """What a batch says about itself."""

    base_offset: Offset
    size_bytes: int
    leader_epoch: LeaderEpoch
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    record_count: int

    @property
    def end_offset(self) -> Offset:
        """The offset after the last one this batch takes up, whether or not compaction left a record there."""
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def codec(self) -> Codec:
        """Refuses the numbers that stand for no codec with `UnsupportedCompression`."""
        number = self.attributes & CODEC_MASK
        if number > Codec.ZSTD:
            raise UnsupportedCompression(
                f"compression codec {number} does not exist; the last is {Codec.ZSTD}"
            )
        return Codec(number)

    @property
    def is_compressed(self) -> bool:
        return self.attributes & CODEC_MASK != 0

    @property
    def uses_append_time(self) -> bool:
        """Every record's timestamp is `max_timestamp`, the broker's clock at the append."""
        return self.attributes & APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """Written by a broker: to end a transaction if it has a producer; consumers skip its records."""
        return self.attributes & CONTROL != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on compaction may remove the batch's tombstones; None if it has not met them yet."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        """Sequences count 0, 1, … 2³¹−1, 0; `SEQUENCE_NONE` where the producer is not idempotent."""
        if self.base_sequence == SEQUENCE_NONE:
            return SEQUENCE_NONE
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX


def max_timestamp(batch: Buffer) -> int:
    """Of a batch that was checked before, without the rest of its header."""
    (timestamp,) = _unpack_timestamp(batch, _MAX_TIMESTAMP_POSITION)
    return int(timestamp)


def decode_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`. Neither the CRC nor the presence of the whole batch is checked.

    Refuses fewer bytes than a header and a length shorter than one with `CorruptBatch`, the formats
    before v2 with `UnsupportedFormat`.
    """
    try:
        (
            base_offset,
            length,
            leader_epoch,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        ) = _unpack_header(buffer, position)
    except struct_error:
        raise _too_short(buffer, position) from None
    if magic != MAGIC:
        raise _wrong_magic(magic)
    if length < HEADER_BYTES - PREFIX_BYTES:
        raise CorruptBatch(f"a batch length of {length} bytes is shorter than a batch header")
    return BatchHeader(
        base_offset,
        length + PREFIX_BYTES,
        leader_epoch,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )


def verify_crc(batch: memoryview) -> bool:
    """Whether the bytes of one whole batch are those its CRC was computed over."""
    expected: int = _unpack_crc(batch, _CRC_POSITION)[0]
    return crc32c(batch[_COVERED_POSITION:]) == expected


def stamp(batch: memoryview, *, base_offset: Offset, leader_epoch: LeaderEpoch) -> None:
    """Write what the log decides, in place. Both lie outside the CRC, which stays true."""
    _pack_base_offset(batch, 0, base_offset)
    _pack_leader_epoch(batch, PREFIX_BYTES, leader_epoch)


def stamp_append_time(batch: memoryview, now_ms: int) -> None:
    """Make `now_ms` the timestamp of every record, without opening the records, and renew the CRC."""
    (attributes,) = _unpack_attributes(batch, _COVERED_POSITION)
    _pack_attributes(batch, _COVERED_POSITION, attributes | APPEND_TIME)
    _pack_timestamp(batch, _MAX_TIMESTAMP_POSITION, now_ms)
    stamp_crc(batch)


def stamp_crc(batch: memoryview) -> None:
    """Compute the CRC of one whole batch and write it into the header."""
    _pack_crc(batch, _CRC_POSITION, crc32c(batch[_COVERED_POSITION:]))


def iterate(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch; stops before an incomplete one at the end.

    Refuses as `decode_header` does, at the first batch that is wrong.
    """
    position, end = 0, len(memoryview(buffer))
    while end - position >= HEADER_BYTES:
        header = decode_header(buffer, position)
        if header.size_bytes > end - position:
            return
        yield position, header
        position += header.size_bytes


def _too_short(buffer: Buffer, position: int) -> CorruptBatch | UnsupportedFormat:
    """A message of format 0 or 1 may be shorter than a v2 header; its magic stands in the same place."""
    rest = memoryview(buffer)[position:]
    if len(rest) > PREFIX_BYTES + 4 and rest[PREFIX_BYTES + 4] in (0, 1):
        return _wrong_magic(rest[PREFIX_BYTES + 4])
    return CorruptBatch(f"{len(rest)} bytes are fewer than the {HEADER_BYTES} of a batch header")


def _wrong_magic(magic: int) -> UnsupportedFormat:
    return UnsupportedFormat(f"record format {magic} is not supported; the broker keeps format {MAGIC}")
