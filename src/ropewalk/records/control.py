"""Control batches: which kinds there are, and how the state of an owner is written between the records of a log.

A control batch is written by a broker, and consumers pass over it, whatever its type is. With a producer it is a transaction marker
(`marker.py`); without one it may be a state batch, which is read and built here. Its one record is never compressed:

    key     version i16 (1), type i16 (1000), owner 16 bytes, snapshot start i64
    value   the owner's own: a delta, or a piece of a snapshot

An owner is whoever keeps its state in the log (a queue). Its snapshots may have several pieces, and only the last one's key says that the
snapshot is whole, by where it began:

    snapshot start    -1    a delta, or a piece that others follow
                      -2    a whole snapshot: this batch is all of it
                      -3    the owner has gone, and nothing of its state is needed any more
                      ≥ 0   the last piece of a snapshot whose first piece lies at that offset

What a reader could get wrong
    A log reads the key of a state batch and nothing else: `STATE_HEAD_BYTES` of the batch are enough for that.
    Between the pieces of a snapshot others may write, its owner too. Whoever loads an owner's state begins with the first piece.
    Later versions of the key may have more fields at its end, as in Kafka.
"""

from enum import IntEnum
from struct import Struct as Layout
from struct import error as struct_error
from typing import Final

from msgspec import Struct
from typing_extensions import Buffer

from ropewalk.base.errors import CorruptBatch
from ropewalk.base.ids import OwnerId
from ropewalk.records.batch import CODEC_MASK, CONTROL, HEADER_BYTES, BatchHeader
from ropewalk.records.record import Record, build, decode_varint


class ControlType(IntEnum):
    """As it stands in the key of a control batch's record, after the version."""

    ABORT = 0
    COMMIT = 1
    STATE = 1000
    """Kafka's own types are small numbers; clients pass over those that they do not know."""


NOT_WHOLE: Final = -1
BEGINS_HERE: Final = -2
OWNER_GONE: Final = -3

_KEY: Final = Layout(">hh16sq")
_VERSION: Final = 1
"""Not 0: of that version librdkafka 2.16 expects four bytes, and stops at a key with more. Others it passes over."""
_BEFORE_KEY: Final = bytes(3)
"""A record's attributes, and the deltas of the time and of the offset: there is one record, so they are 0."""

STATE_HEAD_BYTES: Final = HEADER_BYTES + 5 + len(_BEFORE_KEY) + 5 + _KEY.size
"""No more of a state batch need be read for its key: the lengths of the record and of the key take up to five bytes each."""


class StateKey(Struct, frozen=True, gc=False):
    """What a state batch says to a log."""

    owner: OwnerId
    snapshot_start: int
    """An offset, or one of `NOT_WHOLE`, `BEGINS_HERE` and `OWNER_GONE`."""


def build_state(
    owner: OwnerId, value: bytes, *, timestamp_ms: int, snapshot_start: int = NOT_WHOLE
) -> bytearray:
    """A state batch, to be stamped by the log."""
    assert snapshot_start >= OWNER_GONE, f"a snapshot cannot begin at {snapshot_start}"
    assert len(owner) == 16, f"an owner has 16 bytes, not {len(owner)}"
    key = _KEY.pack(_VERSION, ControlType.STATE, owner, snapshot_start)
    return build([Record(timestamp=timestamp_ms, key=key, value=value)], is_control=True)


def read_state_key(header: BatchHeader, batch: Buffer) -> StateKey | None:
    """The key of a batch, of which `STATE_HEAD_BYTES` are enough; None if it is no state batch."""
    if header.producer_id >= 0 or header.attributes & (CONTROL | CODEC_MASK) != CONTROL:
        return None
    head = bytes(memoryview(batch)[HEADER_BYTES:STATE_HEAD_BYTES])
    try:
        _, position = decode_varint(head, 0)
        if not head.startswith(_BEFORE_KEY, position):
            return None
        key_bytes, position = decode_varint(head, position + len(_BEFORE_KEY))
        if key_bytes < _KEY.size:
            return None
        _, kind, owner, snapshot_start = _KEY.unpack_from(head, position)
    except (CorruptBatch, IndexError, struct_error):
        return None
    if kind != ControlType.STATE or snapshot_start < OWNER_GONE:
        return None
    return StateKey(OwnerId(owner), snapshot_start)
