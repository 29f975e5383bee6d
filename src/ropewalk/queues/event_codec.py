"""A delta as the value of a control record, and back.

    version (0), kind (0: delta), the log's time, the writer's time, the committed end, the number of events, then each: its type and its fields

Offsets are written as the distance from the one before, deadlines as durations from the log's time of the delta, and wall times as the distance from
the writer's: an acquire of ten messages takes some forty bytes.
"""

from typing import Final

from ropewalk.base.errors import InvalidRecord
from ropewalk.queues.binary import Reader, Writer
from ropewalk.queues.events import (
    Acquired,
    Cleared,
    Delta,
    Event,
    Hidden,
    MoveEnded,
    MoveIntended,
    Passed,
    Released,
    Rewound,
    Settled,
    TaskBegun,
    TaskEnded,
)

VERSION: Final = 0
KIND_DELTA: Final = 0
KIND_SNAPSHOT: Final = 1

_PASSED, _ACQUIRED, _HIDDEN, _RELEASED, _SETTLED, _CLEARED, _REWOUND = range(7)
_MOVE_INTENDED, _MOVE_ENDED, _TASK_BEGUN, _TASK_ENDED, _PURGED = range(7, 12)


def encode_delta(delta: Delta) -> bytes:
    writer = Writer()
    writer.number(VERSION)
    writer.number(KIND_DELTA)
    writer.number(delta.log_ms)
    writer.number(delta.wall_ms)
    writer.number(delta.end_offset)
    writer.number(len(delta.events))
    origin = 0
    for event in delta.events:
        origin = _write_event(writer, event, delta, origin)
    return bytes(writer.buffer)


def decode_delta(value: bytes) -> Delta:
    """Raises `InvalidRecord` for one that cannot be read: to skip it would be to forget what was promised."""
    reader = Reader(value)
    check_version(reader)
    if reader.number() != KIND_DELTA:
        raise InvalidRecord("this is no delta of a queue")
    log_ms, wall_ms, end_offset = reader.number(), reader.number(), reader.number()
    events: list[Event] = []
    origin = 0
    for _ in range(reader.count()):
        event, origin = _read_event(reader, log_ms, wall_ms, origin)
        events.append(event)
    reader.finish()
    return Delta(log_ms, wall_ms, tuple(events), end_offset)


def check_version(reader: Reader) -> None:
    version = reader.number()
    if version != VERSION:
        raise InvalidRecord(f"the state of a queue is of version {version}, which is not known")


def write_move(writer: Writer, move: MoveIntended, origin: int) -> None:
    writer.offsets(move.offsets, origin)
    writer.text(move.topic_id)
    for number in (move.partition, move.producer_id, move.producer_epoch, move.sequence, move.intended_at_ms):
        writer.number(number)
    writer.text(move.task_id)


def read_move(reader: Reader, origin: int) -> MoveIntended:
    offsets = reader.offsets(origin)
    topic_id = reader.text()
    partition, producer_id, producer_epoch, sequence, intended_at_ms = (reader.number() for _ in range(5))
    return MoveIntended(
        offsets,
        topic_id,
        partition,
        producer_id,
        producer_epoch,
        sequence,
        intended_at_ms,
        task_id=reader.text(),
    )


def read_words(reader: Reader) -> str:
    """Raises `InvalidRecord` for what is no text."""
    try:
        return reader.text().decode()
    except UnicodeDecodeError as problem:
        raise InvalidRecord("the state of a queue has words that are no text") from problem


def _write_event(writer: Writer, event: Event, delta: Delta, origin: int) -> int:
    """Answers from which offset the next event counts."""
    match event:
        case Acquired(offsets, sent_at_ms, attempt, at_ms, until_ms, received_at_ms, request_id):
            writer.number(_ACQUIRED)
            writer.offsets(offsets, origin)
            wall_ms = delta.wall_ms
            writer.signed_all([wall_ms - each_ms for each_ms in sent_at_ms])
            writer.number(attempt)
            writer.signed(delta.log_ms - at_ms)
            writer.signed(until_ms - delta.log_ms)
            writer.signed(delta.wall_ms - received_at_ms)
            writer.text(request_id)
            return _last(offsets, origin)
        case Hidden(offsets, until_ms, is_acquired):
            writer.number(_HIDDEN)
            writer.offsets(offsets, origin)
            writer.signed(until_ms - delta.log_ms)
            writer.number(is_acquired)
            return _last(offsets, origin)
        case Released(offsets) | Settled(offsets):
            writer.number(_RELEASED if isinstance(event, Released) else _SETTLED)
            writer.offsets(offsets, origin)
            return _last(offsets, origin)
        case Cleared(offset, purged_at_ms) if purged_at_ms:
            writer.number(_PURGED)
            writer.signed(offset - origin)
            writer.number(purged_at_ms)
            return offset
        case Passed(offset) | Cleared(offset) | Rewound(offset):
            writer.number(_WITH_ONE_OFFSET[type(event)])
            writer.signed(offset - origin)
            return offset
        case MoveIntended(offsets):
            writer.number(_MOVE_INTENDED)
            write_move(writer, event, origin)
            return _last(offsets, origin)
        case MoveEnded(moved_count):
            writer.number(_MOVE_ENDED)
            writer.number(moved_count)
            return origin
        case TaskBegun(task_id, end_offset):
            writer.number(_TASK_BEGUN)
            writer.text(task_id)
            writer.number(end_offset)
            return origin
        case TaskEnded(ending, reason):
            writer.number(_TASK_ENDED)
            writer.text(ending.encode())
            writer.text(reason.encode())
            return origin


def _read_event(reader: Reader, log_ms: int, wall_ms: int, origin: int) -> tuple[Event, int]:
    kind = reader.number()
    if kind in _OF_ONE_OFFSET:
        offset = reader.offset(origin)
        return _OF_ONE_OFFSET[kind](offset), offset
    if kind == _PURGED:
        offset = reader.offset(origin)
        return Cleared(offset, reader.number()), offset
    if kind == _MOVE_ENDED:
        return MoveEnded(reader.number()), origin
    if kind == _TASK_BEGUN:
        return TaskBegun(reader.text(), reader.number()), origin
    if kind == _TASK_ENDED:
        return TaskEnded(read_words(reader), read_words(reader)), origin
    if kind == _MOVE_INTENDED:
        move = read_move(reader, origin)
        return move, _last(move.offsets, origin)
    if kind not in (_ACQUIRED, _HIDDEN, _RELEASED, _SETTLED):
        raise InvalidRecord(f"the state of a queue has an event of type {kind}, which is not known")
    offsets = reader.offsets(origin)
    event: Event
    if kind == _ACQUIRED:
        event = Acquired(
            offsets,
            sent_at_ms=tuple(wall_ms - reader.signed() for _ in offsets),
            attempt=reader.number(),
            at_ms=log_ms - reader.signed(),
            until_ms=log_ms + reader.signed(),
            received_at_ms=wall_ms - reader.signed(),
            request_id=reader.text(),
        )
    elif kind == _HIDDEN:
        event = Hidden(offsets, log_ms + reader.signed(), bool(reader.number()))
    else:
        event = Released(offsets) if kind == _RELEASED else Settled(offsets)
    return event, _last(offsets, origin)


_WITH_ONE_OFFSET: Final[dict[type[Passed | Cleared | Rewound], int]] = {
    Passed: _PASSED,
    Cleared: _CLEARED,
    Rewound: _REWOUND,
}
_OF_ONE_OFFSET: Final[dict[int, type[Passed] | type[Cleared] | type[Rewound]]] = {
    number: kind for kind, number in _WITH_ONE_OFFSET.items()
}


def _last(offsets: tuple[int, ...], origin: int) -> int:
    return offsets[-1] if offsets else origin
