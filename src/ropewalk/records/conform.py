"""Turn a valid batch into what its topic stores: the topic's codec, the broker's clock.

Most topics keep what producers send, and their batches never come here (`Rules.rewrites`). Recompression is
work for the disk pool.
"""

from typing import Final

from ropewalk.base.errors import BatchTooLarge, CorruptBatch, InvalidRecord
from ropewalk.base.limits import BATCH_OPENED_BYTES_MAX
from ropewalk.records.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    PREFIX_BYTES,
    BatchHeader,
    decode_header,
    stamp_append_time,
    stamp_crc,
)
from ropewalk.records.codec import Codec
from ropewalk.records.compression import compress, decompress
from ropewalk.records.validate import Rules, TimestampType

_LENGTH: Final = slice(8, 12)
_ATTRIBUTES: Final = slice(21, 23)


def conform(
    batch: memoryview, header: BatchHeader, rules: Rules, now_ms: int
) -> tuple[memoryview, BatchHeader]:
    """The batch to append and its header, for a batch that `validate_produced` let pass.

    The batch given is stamped in place where only the time changes, and left alone where a recompressed one is
    returned. Raises `InvalidRecord` for compressed data that cannot be opened and `BatchTooLarge` when the
    topic's codec makes the batch larger than the topic allows.
    """
    if rules.compression is not None and rules.compression is not header.codec:
        batch = memoryview(_recompress(batch, header, rules.compression, rules.compression_level))
        if len(batch) > rules.bytes_max:
            raise BatchTooLarge(
                f"the batch has {len(batch)} bytes as {rules.compression.name.lower()}, "
                f"the topic takes {rules.bytes_max}"
            )
    if rules.timestamp_type is TimestampType.APPEND:
        stamp_append_time(batch, now_ms)
    return batch, decode_header(batch)


def _recompress(batch: memoryview, header: BatchHeader, codec: Codec, level: int | None) -> bytearray:
    try:
        payload = decompress(header.codec, batch[HEADER_BYTES:], bytes_max=BATCH_OPENED_BYTES_MAX)
    except CorruptBatch as error:
        raise InvalidRecord(str(error)) from None
    stored = compress(codec, payload, level)
    rewritten = bytearray(batch[:HEADER_BYTES]) + stored
    rewritten[_LENGTH] = (HEADER_BYTES - PREFIX_BYTES + len(stored)).to_bytes(4, "big")
    attributes = (header.attributes & ~CODEC_MASK | codec) & 0xFFFF
    rewritten[_ATTRIBUTES] = attributes.to_bytes(2, "big")
    stamp_crc(memoryview(rewritten))
    return rewritten
