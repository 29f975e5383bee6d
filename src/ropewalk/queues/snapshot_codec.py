"""The whole state as pieces of at most 1 MiB, each the value of a control record, and back.

    version (0), kind (1: snapshot), which piece it is, whether it is the last, and its bytes

The pieces count with the last one. Put together they are the state: positions and times; settled and received messages as roaring bitmaps, and of the received
ones a column of numbers for each field; ids of receives, the move under way, the move task, sequences, deduplication ids, and when which end of the log was there. The same state is
always the same bytes.
"""

from collections.abc import Iterator

from msgspec import Struct
from pyroaring import BitMap64

from ropewalk.base.errors import InvalidRecord
from ropewalk.base.limits import QUEUE_SNAPSHOT_BYTES_MAX, QUEUE_SNAPSHOT_PIECE_BYTES
from ropewalk.queues.binary import Reader, Writer
from ropewalk.queues.deduplication import KEY_BYTES
from ropewalk.queues.event_codec import (
    KIND_SNAPSHOT,
    VERSION,
    check_version,
    read_move,
    read_words,
    write_move,
)
from ropewalk.queues.sent_times import SentTimes
from ropewalk.queues.state import Entry, KeptReceive, QueueState, TaskShare


class Piece(Struct, frozen=True):
    index: int
    is_last: bool
    data: bytes


def encode_snapshot(state: QueueState, piece_bytes_max: int = QUEUE_SNAPSHOT_PIECE_BYTES) -> list[bytes]:
    whole = bytes(_write_state(state))
    room = piece_bytes_max - 16
    parts = [whole[start : start + room] for start in range(0, len(whole), room)]
    return [_piece(index, index == len(parts) - 1, part) for index, part in enumerate(parts)]


def decode_piece(value: bytes) -> Piece:
    """Raises `InvalidRecord` for what is none."""
    reader = Reader(value)
    check_version(reader)
    if reader.number() != KIND_SNAPSHOT:
        raise InvalidRecord("this is no piece of a queue's snapshot")
    piece = Piece(reader.number(), bool(reader.number()), reader.text())
    reader.finish()
    return piece


def decode_state(pieces: list[bytes]) -> QueueState:
    """From the bytes of all pieces, in order."""
    if sum(map(len, pieces)) > QUEUE_SNAPSHOT_BYTES_MAX:
        raise InvalidRecord("the snapshot of a queue is larger than any that is written")
    return _read_state(Reader(b"".join(pieces)))


def _piece(index: int, is_last: bool, data: bytes) -> bytes:
    writer = Writer()
    for number in (VERSION, KIND_SNAPSHOT, index, int(is_last)):
        writer.number(number)
    writer.text(data)
    return bytes(writer.buffer)


def _write_state(state: QueueState) -> bytearray:
    writer = Writer()
    for number in (state.log_ms, state.wall_ms, state.floor, state.cursor, state.attempt):
        writer.number(number)
    _write_bitmap(writer, state.settled)
    _write_bitmap(writer, state.touched)
    entries = [state.entries[offset] for offset in state.touched]
    writer.column([entry.sent_at_ms for entry in entries])
    writer.column(
        [entry.receive_count << 2 | entry.was_repeated << 1 | entry.is_acquired for entry in entries]
    )
    writer.column([entry.attempt for entry in entries])
    writer.column([entry.acquired_at_ms for entry in entries])
    writer.column([entry.until_ms for entry in entries])
    writer.column([entry.first_received_at_ms for entry in entries])
    writer.number(len(state.receives))
    for request_id, kept in state.receives.items():
        writer.text(request_id)
        writer.offsets(kept.offsets, state.floor)
        writer.number(kept.attempt)
        writer.signed(kept.at_ms)
        writer.signed(kept.until_ms)
    writer.number(state.move is not None)
    if state.move is not None:
        write_move(writer, state.move, state.floor)
    _write_task(writer, state.task)
    writer.number(state.purged_at_ms)
    for number in state.producer:
        writer.signed(number)
    writer.number(len(state.sequences))
    for (topic_id, partition), sequence in sorted(state.sequences.items()):
        writer.text(topic_id)
        writer.number(partition)
        writer.number(sequence)
    ids = list(state.deduplication)
    writer.number(len(ids))
    for key, _, _ in ids:
        assert len(key) == KEY_BYTES, "a digest"
        writer.buffer += key
    writer.column([offset for _, offset, _ in ids])
    writer.column([sent_at_ms for _, _, sent_at_ms in ids])
    writer.number(len(state.sent_times))
    end_before, log_ms_before = 0, 0
    for end_offset, log_ms in state.sent_times:
        writer.number(end_offset - end_before)
        writer.signed(log_ms - log_ms_before)
        end_before, log_ms_before = end_offset, log_ms
    return writer.buffer


def _read_state(reader: Reader) -> QueueState:
    state = QueueState()
    state.log_ms, state.wall_ms, state.floor, state.cursor, state.attempt = (
        reader.number() for _ in range(5)
    )
    state.settled = _read_bitmap(reader.text())
    state.touched = _read_bitmap(reader.text())
    if len(state.touched) > reader.left():  # garbled, and would ask for much memory
        raise InvalidRecord("the state of a queue promises more than it has")
    columns = [reader.column(len(state.touched)) for _ in range(6)]
    for offset, sent, count, attempt, acquired, until, first in zip(state.touched, *columns, strict=True):
        state.entries[offset] = Entry(
            sent, count >> 2, attempt, acquired, until, bool(count & 1), first, bool(count & 2)
        )
    for _ in range(reader.count()):
        request_id = reader.text()
        offsets = reader.offsets(state.floor)
        state.receives[request_id] = KeptReceive(offsets, reader.number(), reader.signed(), reader.signed())
    if reader.number():
        state.move = read_move(reader, state.floor)
    state.task = _read_task(reader)
    state.purged_at_ms = reader.number()
    state.producer = (reader.signed(), reader.signed())
    for _ in range(reader.count()):
        target = (reader.text(), reader.number())
        state.sequences[target] = reader.number()
    count = reader.count()
    keys = [reader.raw(KEY_BYTES) for _ in range(count)]
    for key, offset, sent_at_ms in zip(keys, reader.column(count), reader.column(count), strict=True):
        state.deduplication.remember(key, offset, sent_at_ms)
    state.sent_times = SentTimes(_read_marks(reader))
    reader.finish()
    return state


def _write_task(writer: Writer, task: TaskShare | None) -> None:
    writer.number(task is not None)
    if task is not None:
        writer.text(task.task_id)
        writer.number(task.end_offset)
        writer.number(task.moved_count)
        writer.text(task.ending.encode())
        writer.text(task.reason.encode())


def _read_task(reader: Reader) -> TaskShare | None:
    if not reader.number():
        return None
    return TaskShare(
        reader.text(), reader.number(), reader.number(), ending=read_words(reader), reason=read_words(reader)
    )


def _read_marks(reader: Reader) -> Iterator[tuple[int, int]]:
    end_offset = log_ms = 0
    for _ in range(reader.count()):
        end_offset += reader.number()
        log_ms += reader.signed()
        yield end_offset, log_ms


def _write_bitmap(writer: Writer, offsets: BitMap64) -> None:
    smallest = BitMap64(offsets)
    smallest.run_optimize()
    writer.text(smallest.serialize() if smallest else b"")


def _read_bitmap(data: bytes) -> BitMap64:
    if not data:
        return BitMap64()
    try:
        return BitMap64.deserialize(data)
    except (ValueError, IndexError) as problem:
        raise InvalidRecord("the settled messages of a queue cannot be read") from problem
