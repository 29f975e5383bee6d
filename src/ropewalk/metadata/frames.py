"""How appends are framed in the local metadata log.

A frame is one append: marker, payload size, checksum, epoch, offset of its first record, number of records,
and the records. The checksum covers everything behind it. A frame without records is a *commit mark*: it is written
after the frame before it was made durable, and it is how a reader knows that a damaged frame had been acknowledged
even if nothing was appended after it.
"""

from struct import Struct as Layout
from typing import Final

from crc32c import crc32c
from msgspec import Struct

_HEADER: Final = Layout(">4sIIIqI")
_MARKER: Final = b"\xf7rwM"
"""Starts with a byte that no MessagePack text and no UTF-8 contains."""
_CHECKED_FROM: Final = 12


class Frame(Struct, frozen=True):
    epoch: int
    base_offset: int
    record_count: int
    payload: bytes
    position: int
    end_position: int
    """Where the next frame begins."""

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.record_count


def encode_frame(*, epoch: int, base_offset: int, record_count: int, payload: bytes) -> bytes:
    frame = bytearray(_HEADER.pack(_MARKER, len(payload), 0, epoch, base_offset, record_count))
    frame += payload
    frame[8:12] = crc32c(memoryview(frame)[_CHECKED_FROM:]).to_bytes(4, "big")
    return bytes(frame)


def find_frame(data: bytes, position: int) -> Frame | None:
    """The first whole, undamaged frame that begins at or after `position`, whatever lies before it."""
    while (position := data.find(_MARKER, position)) >= 0:
        frame = _decode_frame(data, position)
        if frame is not None:
            return frame
        position += 1
    return None


def _decode_frame(data: bytes, position: int) -> Frame | None:
    if len(data) - position < _HEADER.size:
        return None
    _, payload_bytes, checksum, epoch, base_offset, record_count = _HEADER.unpack_from(data, position)
    payload_position = position + _HEADER.size
    end_position = payload_position + payload_bytes
    if (
        end_position > len(data)
        or crc32c(memoryview(data)[position + _CHECKED_FROM : end_position]) != checksum
    ):
        return None
    payload = data[payload_position:end_position]
    return Frame(epoch, base_offset, record_count, payload, position, end_position)
