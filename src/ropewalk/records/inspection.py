"""Whether the records of a produced batch are what its header says, without making an object of any of them.

What Kafka's own validator looks at: that the batch can be opened, that it holds as many records as the header counts and nothing behind
them, that every record's fields fill it exactly, and that offsets count up from 0.

What a reader could get wrong
    Whatever is usual is looked at in place; a record with headers or a number of many bytes is given to the decoder that handles
    everything. What passes here can be opened by `unpack` and by `iterate_records`.
    This takes time in proportion to the records: it belongs in the disk pool.
"""

from typing import Final

from ropewalk.base.errors import CorruptBatch, InvalidRecord
from ropewalk.base.limits import BATCH_OPENED_BYTES_MAX
from ropewalk.records.batch import HEADER_BYTES, BatchHeader
from ropewalk.records.compression import decompress
from ropewalk.records.record import TIMESTAMP_MAX, decode_one

_TIMESTAMP_PLAIN_MAX: Final = TIMESTAMP_MAX - (1 << 40)
"""A header's timestamp from which no delta of three bytes leads beyond what can be said."""


def inspect(batch: memoryview, header: BatchHeader) -> None:
    """Refuses with `InvalidRecord`, which names the record where one is to blame; an unknown codec with `UnsupportedCompression`."""
    codec = header.codec
    try:
        payload = decompress(codec, batch[HEADER_BYTES:], bytes_max=BATCH_OPENED_BYTES_MAX)
    except CorruptBatch as error:
        raise InvalidRecord(str(error)) from None
    size, position, index = len(payload), 0, 0
    is_plain = abs(header.base_timestamp) <= _TIMESTAMP_PLAIN_MAX
    try:
        for index in range(header.record_count):
            start = position
            byte = payload[position]
            if byte < 0x80:
                end = position + 1 + (byte >> 1)
                position += 2
            else:
                second = payload[position + 1]
                end = position + 2 + ((byte & 0x7F | second << 7) >> 1)
                position += 3
                if second >= 0x80:
                    position = _inspect_one(payload, start, header, index)
                    continue
            # Behind the attributes the timestamp, of up to three bytes where records of a batch are minutes apart at most.
            if payload[position] >= 0x80:
                position += 1
                if payload[position] >= 0x80:
                    position += 1
            is_usual = payload[position] < 0x80
            byte = payload[position + 1]
            if byte < 0x80:
                delta = byte
                position += 2
            else:
                second = payload[position + 2]
                is_usual = is_usual and second < 0x80
                delta = byte & 0x7F | second << 7
                position += 3
            byte = payload[position]
            if delta != index << 1 or byte >= 0x80 or not is_usual or not is_plain:
                position = _inspect_one(payload, start, header, index)
                continue
            position += 1 if byte == 1 else 1 + (byte >> 1)
            second = payload[position]
            if second < 0x80:
                position += 1 if second == 1 else 1 + (second >> 1)
            else:
                third = payload[position + 1]
                if third >= 0x80:
                    position = _inspect_one(payload, start, header, index)
                    continue
                position += 2 + ((second & 0x7F | third << 7) >> 1)
            if payload[position] == 0 and position + 1 == end <= size:
                position = end
            else:
                position = _inspect_one(payload, start, header, index)
    except IndexError:
        raise InvalidRecord(
            f"the batch ends inside record {index} of {header.record_count}", (index,)
        ) from None
    except CorruptBatch as error:
        raise InvalidRecord(f"record {index}: {error}", (index,)) from None
    if position != size:
        raise InvalidRecord(f"{size - position} bytes follow record {header.record_count}, the last")


def _inspect_one(payload: bytes, start: int, header: BatchHeader, index: int) -> int:
    """Every number is looked at here. Where the record ends."""
    record, end = decode_one(payload, start, header)
    if record.offset - header.base_offset != index:
        raise InvalidRecord(
            f"record {index} has offset delta {record.offset - header.base_offset}, {index} was expected",
            (index,),
        )
    return end
