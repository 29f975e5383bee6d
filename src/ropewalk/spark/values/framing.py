"""The prefix of serializers that use a registry: a zero, and the schema's number in four bytes.

Protobuf has more of it: which message of the file this is, as a path of indexes. A file's first message, which most are, is a
single zero.
"""

from typing import Final

MAGIC: Final = 0
HEADER_BYTES: Final = 5
_INDEXES_MAX: Final = 64
"""How deep messages are nested in one another, at most; more than that is no path but other bytes."""


class NotFramed(ValueError):
    """The value does not begin as such values do."""


def unframe(value: bytes) -> tuple[int, bytes]:
    """The schema's number, and what comes after it."""
    if len(value) < HEADER_BYTES:
        raise NotFramed(f"{len(value)} bytes are too short for a schema's number")
    if value[0] != MAGIC:
        raise NotFramed(f"begins with {value[0]:#04x} where a schema's number begins with 0x00")
    return int.from_bytes(value[1:HEADER_BYTES], "big"), value[HEADER_BYTES:]


def take_message_path(body: bytes) -> tuple[tuple[int, ...], bytes]:
    """Which message of the schema's file it is, and the message."""
    count, at = _zigzag(body, 0)
    if count == 0:
        return (0,), body[at:]
    if not 0 < count <= _INDEXES_MAX:
        raise NotFramed(f"names a message by {count} indexes")
    path: list[int] = []
    for _ in range(count):
        index, at = _zigzag(body, at)
        path.append(index)
    return tuple(path), body[at:]


def _zigzag(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(body):
            raise NotFramed("ends inside the path of its message")
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise NotFramed("has a path of its message that is no number")
