"""A snapshot as bytes, under a checksum."""

from typing import Final

import msgspec
from crc32c import crc32c

from ropewalk.base.errors import CorruptMetadata
from ropewalk.metadata.levels import unreadable
from ropewalk.metadata.log import Snapshot

_MAGIC: Final = b"rwsnap01"


def encode_snapshot(snapshot: Snapshot) -> bytes:
    body = msgspec.msgpack.encode(snapshot)
    return _MAGIC + crc32c(body).to_bytes(4, "big") + body


def decode_snapshot(path: str, data: bytes) -> Snapshot:
    """`path` says where it was found. Raises `CorruptMetadata`, or `UnreadableMetadata` if a newer version wrote it."""
    if data[:8] != _MAGIC or crc32c(data[12:]) != int.from_bytes(data[8:12], "big"):
        raise CorruptMetadata(
            f"{path} fails its checksum at byte 0; stop every node of the cluster and restore the metadata from a backup"
        )
    try:
        return msgspec.msgpack.decode(data[12:], type=Snapshot)
    except ValueError as error:
        raise unreadable(data[12:], error) from error
