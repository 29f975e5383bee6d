"""Records about offsets, packed and read by hand: they are written by the thousand and read by the million.

Only what we write ourselves is known here: key 1 with value 3. All else, and whatever is wrong, is None, and left to
the schemas in `event_codec`, which say what they do not like.
"""

from functools import lru_cache
from struct import Struct as Layout
from struct import error as layout_error
from typing import Final

from ropewalk.groups.answers import CommittedOffset
from ropewalk.groups.events import OffsetCommitted

_PREFIXES_KEPT: Final = 4096
"""Groups with their topics of which the bytes are remembered: most records are about few of them."""

_KIND: Final = 1
_VERSION: Final = 3
_KIND_AND_LENGTH: Final = Layout(">hh")
_LENGTH: Final = Layout(">h")
_PARTITION: Final = Layout(">i")
_PARTITION_BYTES: Final = 4
_VALUE_START: Final = Layout(">hqih")
_VALUE_WITHOUT_METADATA: Final = Layout(">hqihq")
_TIMESTAMP: Final = Layout(">q")


def encode_key(group_id: str, topic: str, partition: int) -> bytes:
    return _prefix(group_id, topic) + _PARTITION.pack(partition)


def encode_value(committed: CommittedOffset) -> bytes:
    if not committed.metadata:
        return _VALUE_WITHOUT_METADATA.pack(
            _VERSION, committed.offset, committed.leader_epoch, 0, committed.committed_at_ms
        )
    metadata = committed.metadata.encode()
    start = _VALUE_START.pack(_VERSION, committed.offset, committed.leader_epoch, len(metadata))
    return b"".join((start, metadata, _TIMESTAMP.pack(committed.committed_at_ms)))


def decode_commit(key: bytes, value: bytes) -> OffsetCommitted | None:
    """What a record says that was written without metadata, as nearly all are, in one go."""
    if len(value) != _VALUE_WITHOUT_METADATA.size:
        return None
    names = _names(key[:-_PARTITION_BYTES])
    version, offset, leader_epoch, length, committed_at_ms = _VALUE_WITHOUT_METADATA.unpack(value)
    if names is None or length or version != _VERSION:
        return None
    partition = int.from_bytes(key[-_PARTITION_BYTES:], "big", signed=True)
    return OffsetCommitted(
        names[0], names[1], partition, CommittedOffset(offset, leader_epoch, "", committed_at_ms)
    )


def decode_key(key: bytes) -> tuple[str, str, int] | None:
    """Group, topic and partition."""
    names = _names(key[:-_PARTITION_BYTES])
    return names and (*names, int.from_bytes(key[-_PARTITION_BYTES:], "big", signed=True))


def decode_value(value: bytes) -> CommittedOffset | None:
    try:
        if len(value) == _VALUE_WITHOUT_METADATA.size:
            version, offset, leader_epoch, length, committed_at_ms = _VALUE_WITHOUT_METADATA.unpack(value)
            metadata = ""
            if version != _VERSION or length:
                return None
        else:
            version, offset, leader_epoch, length = _VALUE_START.unpack_from(value)
            end = _VALUE_START.size + length
            if version != _VERSION or length < 0 or len(value) != end + _TIMESTAMP.size:
                return None
            metadata = value[_VALUE_START.size : end].decode()
            (committed_at_ms,) = _TIMESTAMP.unpack_from(value, end)
    except (layout_error, UnicodeDecodeError):
        return None
    return CommittedOffset(offset, leader_epoch, metadata, committed_at_ms)


@lru_cache(_PREFIXES_KEPT)
def _prefix(group_id: str, topic: str) -> bytes:
    """A key but for its partition."""
    group, name = group_id.encode(), topic.encode()
    return b"".join((_KIND_AND_LENGTH.pack(_KIND, len(group)), group, _LENGTH.pack(len(name)), name))


@lru_cache(_PREFIXES_KEPT)
def _names(prefix: bytes) -> tuple[str, str] | None:
    """The inverse of `_prefix`."""
    try:
        kind, length = _KIND_AND_LENGTH.unpack_from(prefix)
        group_end = _KIND_AND_LENGTH.size + length
        if kind != _KIND or length < 0:
            return None
        (length,) = _LENGTH.unpack_from(prefix, group_end)
        start = group_end + _LENGTH.size
        if length < 0 or start + length != len(prefix):
            return None
        return prefix[_KIND_AND_LENGTH.size : group_end].decode(), prefix[start:].decode()
    except (layout_error, UnicodeDecodeError):
        return None
