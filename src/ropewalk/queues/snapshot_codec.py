"""The whole state as pieces of at most 1 MiB, each the value of a control record, and back.

    version (0), kind (1: snapshot), which piece it is, whether it is the last, and its bytes

The pieces count with the last one. Put together they are the state: positions and times, settled messages as a roaring bitmap, entries, ids of receives, the
move under way, sequences, deduplication ids. The same state is always the same bytes.
"""

from msgspec import Struct
from pyroaring import BitMap64

from ropewalk.base.errors import InvalidRecord
from ropewalk.base.limits import QUEUE_SNAPSHOT_BYTES_MAX, QUEUE_SNAPSHOT_PIECE_BYTES
from ropewalk.queues.binary import Reader, Writer
from ropewalk.queues.event_codec import KIND_SNAPSHOT, VERSION, check_version, read_move, write_move
from ropewalk.queues.state import Entry, KeptReceive, QueueState


class Piece(Struct, frozen=True):
    index: int
    is_last: bool
    data: bytes


def encode_snapshot(state: QueueState) -> list[bytes]:
    whole = bytes(_write_state(state))
    room = QUEUE_SNAPSHOT_PIECE_BYTES - 16
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
    settled = BitMap64(state.settled)
    settled.run_optimize()
    writer.text(settled.serialize() if settled else b"")
    writer.offsets(state.touched, state.floor)
    for offset in state.touched:
        entry = state.entries[offset]
        writer.signed(state.wall_ms - entry.sent_at_ms)
        writer.number(entry.receive_count << 1 | entry.is_acquired)
        writer.number(entry.attempt)
        writer.signed(entry.acquired_at_ms)
        writer.signed(entry.until_ms)
        writer.signed(entry.first_received_at_ms)
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
    for number in state.producer:
        writer.signed(number)
    writer.number(len(state.sequences))
    for (topic_id, partition), sequence in sorted(state.sequences.items()):
        writer.text(topic_id)
        writer.number(partition)
        writer.number(sequence)
    writer.number(len(state.deduplication))
    for key, offset, sent_at_ms in state.deduplication:
        writer.text(key)
        writer.number(offset)
        writer.signed(state.wall_ms - sent_at_ms)
    return writer.buffer


def _read_state(reader: Reader) -> QueueState:
    state = QueueState()
    state.log_ms, state.wall_ms, state.floor, state.cursor, state.attempt = (
        reader.number() for _ in range(5)
    )
    state.settled = _read_bitmap(reader.text())
    for offset in reader.offsets(state.floor):
        state.entries[offset] = Entry(0)
        state.touched.add(offset)
    for offset in state.touched:
        entry = state.entries[offset]
        entry.sent_at_ms = state.wall_ms - reader.signed()
        count = reader.number()
        entry.receive_count, entry.is_acquired = count >> 1, bool(count & 1)
        entry.attempt = reader.number()
        entry.acquired_at_ms = reader.signed()
        entry.until_ms = reader.signed()
        entry.first_received_at_ms = reader.signed()
    for _ in range(reader.count()):
        request_id = reader.text()
        offsets = reader.offsets(state.floor)
        state.receives[request_id] = KeptReceive(offsets, reader.number(), reader.signed(), reader.signed())
    if reader.number():
        state.move = read_move(reader, state.floor)
    state.producer = (reader.signed(), reader.signed())
    for _ in range(reader.count()):
        target = (reader.text(), reader.number())
        state.sequences[target] = reader.number()
    for _ in range(reader.count()):
        key, offset = reader.text(), reader.number()
        state.deduplication.remember(key, offset, state.wall_ms - reader.signed())
    reader.finish()
    return state


def _read_bitmap(data: bytes) -> BitMap64:
    if not data:
        return BitMap64()
    try:
        return BitMap64.deserialize(data)
    except ValueError as problem:
        raise InvalidRecord("the settled messages of a queue cannot be read") from problem
