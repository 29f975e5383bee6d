"""What is kept where in etcd, and how it is written.

controller              who may append: node id, epoch, and a nonce by which it knows its own write again
alive                   the holder's epoch, under a lease: gone when the holder was not heard of for a while
end                     where the log ends
log/OFFSET              one append; the key is the offset of its first record
snapshot                which snapshot is the newest: the name of its chunks, their number, where it ends
chunks/NAME/INDEX       the snapshot's bytes, piece by piece
"""

from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from ropewalk.base.errors import CorruptMetadata
from ropewalk.base.ids import NodeId
from ropewalk.metadata.frames import encode_frame, find_frame
from ropewalk.metadata.levels import unreadable
from ropewalk.metadata.records import MetadataRecord, decode_records, encode_records

V = TypeVar("V")
NOTHING_BEYOND: Final = b"~"
"""Sorts behind every digit and letter that a key goes on with."""


class Held(Struct, frozen=True):
    """The value of the controller key."""

    node_id: NodeId
    epoch: int
    nonce: str


class Pointer(Struct, frozen=True):
    """The value of the snapshot key."""

    name: str
    chunk_count: int
    end_offset: int
    size_bytes: int
    reign: str = ""
    """In which the last record before `end_offset` was appended."""


class Batch(Struct, frozen=True):
    epoch: int
    base_offset: int
    records: tuple[MetadataRecord, ...]

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.records)


class Keys:
    """The names, below one prefix, so that clusters may share an etcd."""

    def __init__(self, prefix: str) -> None:
        self.first = prefix.encode()
        self.beyond = self.first + NOTHING_BEYOND
        self.controller = self.first + b"controller"
        self.alive = self.first + b"alive"
        self.end = self.first + b"end"
        self.snapshot = self.first + b"snapshot"
        self.log = self.first + b"log/"
        self.log_beyond = self.log + NOTHING_BEYOND
        self.chunks = self.first + b"chunks/"

    def append_at(self, offset: int) -> bytes:
        return self.log + b"%020d" % offset

    def chunks_of(self, name: str) -> bytes:
        return self.chunks + name.encode() + b"/"

    def chunk(self, name: str, index: int) -> bytes:
        return self.chunks_of(name) + b"%08d" % index


def encode_batch(batch: Batch) -> bytes:
    return encode_frame(
        epoch=batch.epoch,
        base_offset=batch.base_offset,
        record_count=len(batch.records),
        payload=encode_records(batch.records),
    )


def decode_batch(key: bytes, value: bytes) -> Batch:
    """Raises `CorruptMetadata`, or `UnreadableMetadata` if a newer version wrote it: what is in the log was acknowledged, so
    going on without it would forget facts."""
    frame = find_frame(value, 0)
    if frame is None or frame.end_position != len(value) or frame.position != 0:
        raise CorruptMetadata(
            f"{key.decode()} in etcd fails its checksum; stop every node and restore etcd from a backup"
        )
    try:
        records = decode_records(frame.payload)
    except ValueError as error:
        raise unreadable(frame.payload, error) from error
    return Batch(frame.epoch, frame.base_offset, records)


def decode_held(value: bytes) -> Held:
    return _decode(value, Held, "controller")


def decode_pointer(value: bytes) -> Pointer:
    return _decode(value, Pointer, "snapshot")


def decode_number(value: bytes, name: str) -> int:
    if not value.isdigit():
        raise CorruptMetadata(f"the key {name} in etcd holds {value[:40]!r} and no number")
    return int(value)


def encode(value: Held | Pointer) -> bytes:
    return msgspec.json.encode(value)


def _decode(value: bytes, kind: type[V], name: str) -> V:
    try:
        return msgspec.json.decode(value, type=kind)
    except ValueError as error:
        raise CorruptMetadata(f"the key {name} in etcd cannot be read: {error}") from error
