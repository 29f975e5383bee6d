"""The records of a batch into a consumer's own objects, in one tight loop.

`record.iterate_records` is for brokers and for those who read a few. Here whatever is usual is decoded in place; whatever is
not, a record with headers or with a number of many bytes, is handed to the decoder that handles everything.
"""

from collections.abc import Callable
from typing import TypeVar

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.limits import BATCH_OPENED_BYTES_MAX
from ropewalk.records.batch import HEADER_BYTES, BatchHeader
from ropewalk.records.compression import decompress
from ropewalk.records.record import decode_one, decode_varint

T = TypeVar("T")

Headers = tuple[tuple[str, bytes | None], ...]
Make = Callable[[str, int, int, int, bytes | None, bytes | None, Headers], T]
"""Topic, partition, offset, timestamp, key, value, headers."""


def unpack(
    batch: memoryview, header: BatchHeader, *, topic: str, partition: int, from_offset: int, make: Make[T]
) -> list[T]:
    """One object for each record from `from_offset` on. The CRC is not checked here; refuses as `iterate_records` does."""
    payload = decompress(header.codec, batch[HEADER_BYTES:], bytes_max=BATCH_OPENED_BYTES_MAX)
    made: list[T] = []
    append = made.append
    size, position = len(payload), 0
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    last_offset_delta = header.last_offset_delta
    append_time = header.max_timestamp if header.uses_append_time else None
    try:
        for _ in range(header.record_count):
            start = position
            byte = payload[position]
            if byte < 0x80:
                length, position = byte >> 1, position + 1
            elif (second := payload[position + 1]) < 0x80:
                length, position = (byte & 0x7F | second << 7) >> 1, position + 2
            else:
                length, position = decode_varint(payload, position)
            end = position + length
            position += 1
            byte = payload[position]
            if byte < 0x80:
                timestamp, position = base_timestamp + ((byte >> 1) ^ -(byte & 1)), position + 1
            else:
                delta, position = decode_varint(payload, position)
                timestamp = base_timestamp + delta
            byte = payload[position]
            if byte < 0x80:
                offset_delta, position = byte >> 1, position + 1
            elif (second := payload[position + 1]) < 0x80:
                offset_delta, position = (byte & 0x7F | second << 7) >> 1, position + 2
            else:
                offset_delta, position = decode_varint(payload, position)
            byte = payload[position]
            if byte == 1:
                key, position = None, position + 1
            elif byte < 0x80:
                position += 1
                stop = position + (byte >> 1)
                key, position = payload[position:stop], stop
            else:
                key_length, position = decode_varint(payload, position)
                stop = position + key_length
                key, position = payload[position:stop], stop
            byte = payload[position]
            if byte == 1:
                value, position = None, position + 1
            else:
                if byte < 0x80:
                    value_length, position = byte >> 1, position + 1
                elif (second := payload[position + 1]) < 0x80:
                    value_length, position = (byte & 0x7F | second << 7) >> 1, position + 2
                else:
                    value_length, position = decode_varint(payload, position)
                stop = position + value_length
                value, position = payload[position:stop], stop
            if (
                payload[position] == 0
                and position + 1 == end <= size
                and offset_delta <= last_offset_delta
                and append_time is None
            ):
                headers: Headers = ()
                position = end
            else:
                # Headers, or something that is wrong: every number is checked there.
                record, position = decode_one(payload, start, header)
                offset_delta, timestamp = record.offset - base_offset, record.timestamp
                key, value, headers = record.key, record.value, record.headers
            if base_offset + offset_delta >= from_offset:
                append(make(topic, partition, base_offset + offset_delta, timestamp, key, value, headers))
    except IndexError:
        raise CorruptBatch(
            f"the batch ends inside a record, {len(made)} of {header.record_count} were read"
        ) from None
    if position != size:
        raise CorruptBatch(f"{size - position} bytes follow record {header.record_count}, the last")
    return made
