"""Unsigned variable-length integers, seven bits at a time, as flexible versions use them for lengths and tags.

Compiled decoders read the first byte themselves, because nearly always it is the only one.
"""

from typing import Final

from ropewalk.base.errors import ProtocolError

STRING_BYTES_MAX: Final = 0x7FFF
"""Kafka refuses longer strings in every version, though compact ones could say more."""

HEADER_TAGS_MAX: Final = 100
"""Kafka has never defined more than one. Each costs half a microsecond to skip and no more than two bytes to send."""

_VALUE_MAX: Final = 0x7FFFFFFF


VARINTS: Final = tuple(bytes((value,)) for value in range(0x80))
"""All that take one byte."""


def encode_varint(value: int) -> bytes:
    # Unrolled, because every record set has one of these and a loop takes twice as long.
    if value < 0x80:
        return VARINTS[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x20_0000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    if value < 0x1000_0000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80, value >> 21))
    assert value <= 0xFFFF_FFFF, f"{value} is no length"
    return bytes(
        (
            value & 0x7F | 0x80,
            value >> 7 & 0x7F | 0x80,
            value >> 14 & 0x7F | 0x80,
            value >> 21 & 0x7F | 0x80,
            value >> 28,
        )
    )


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
    """The position after a tagged section of `count` fields of which nothing is known."""
    for _ in range(count):
        _, position = decode_varint(buffer, position)
        size, position = decode_varint(buffer, position)
        position += size
    return position


def skip_header_tags(buffer: memoryview, position: int, count: int) -> int:
    """As `skip_tags`, for a header; `count` is the section's first byte, just read."""
    if count > 0x7F:
        count, position = finish_varint(buffer, position, count)
    if count > HEADER_TAGS_MAX:
        raise ProtocolError(f"the header announces {count} tagged fields, {HEADER_TAGS_MAX} are allowed")
    return skip_tags(buffer, position, count)
