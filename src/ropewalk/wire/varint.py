"""Unsigned variable-length integers, seven bits at a time, as flexible versions use them for lengths and tags.

Compiled decoders read the first byte themselves, because nearly always it is the only one.
"""

from typing import Final

from ropewalk.base.errors import ProtocolError

STRING_BYTES_MAX: Final = 0x7FFF
"""Kafka refuses longer strings in every version, though compact ones could say more."""

_VALUE_MAX: Final = 0x7FFFFFFF


def encode_varint(value: int) -> bytes:
    if value < 0x80:
        return value.to_bytes(1, "big")
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    """The value, and the position after it. Past the end of the buffer: `IndexError`."""
    first = buffer[position]
    if first < 0x80:
        return first, position + 1
    return finish_varint(buffer, position + 1, first)


def finish_varint(
    buffer: memoryview, position: int, first: int, value_max: int = _VALUE_MAX
) -> tuple[int, int]:
    """The value whose first byte, which says that more follow, has been read from just before `position`."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > value_max:
                raise ProtocolError(f"a variable-length integer of {value}, at most {value_max} makes sense")
            return value, position
    raise ProtocolError("a variable-length integer of more than five bytes")


def skip_tags(buffer: memoryview, position: int, count: int) -> int:
    """The position after a tagged section of which nothing is known; `count` is its first byte, just read."""
    if count > 0x7F:
        count, position = finish_varint(buffer, position, count)
    for _ in range(count):
        _, position = decode_varint(buffer, position)
        size, position = decode_varint(buffer, position)
        position += size
    return position
