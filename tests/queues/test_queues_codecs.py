"""Deltas and snapshots come back from their bytes as they were, in however many pieces; garbled bytes are refused, and harm nobody."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from ropewalk.base.errors import InvalidRecord
from ropewalk.queues import QueueReplay
from ropewalk.queues.event_codec import decode_delta, encode_delta
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
from ropewalk.queues.sent_times import SentTimes
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.snapshot_codec import decode_piece, decode_state, encode_snapshot
from ropewalk.queues.state import Entry, KeptReceive, QueueState, TaskShare

OFFSETS = st.lists(st.integers(0, 2**62), max_size=5, unique=True).map(tuple)
OFFSET = st.integers(0, 2**62)
TIMES_MS = st.integers(-(2**41), 2**42)
COUNTS = st.integers(0, 2**31 - 1)
MOVES = st.builds(
    MoveIntended,
    OFFSETS,
    st.binary(min_size=16, max_size=16),
    COUNTS,
    COUNTS,
    COUNTS,
    COUNTS,
    st.integers(0, 2**42),
    st.binary(max_size=16),
)
TASKS = st.builds(
    TaskShare, st.binary(max_size=16), OFFSET, COUNTS, st.sampled_from(["", "FAILED"]), st.text()
)


@st.composite
def acquires(draw: st.DrawFn) -> Acquired:
    offsets = draw(OFFSETS)
    sent_at_ms = tuple(draw(TIMES_MS) for _ in offsets)
    attempt, request_id = draw(st.integers(0, 2**50)), draw(st.binary(max_size=20))
    return Acquired(offsets, sent_at_ms, attempt, draw(TIMES_MS), draw(TIMES_MS), draw(TIMES_MS), request_id)


EVENTS: dict[type, st.SearchStrategy[Event]] = {
    Passed: st.builds(Passed, OFFSET),
    Acquired: acquires(),
    Hidden: st.builds(Hidden, OFFSETS, TIMES_MS, st.booleans()),
    Released: st.builds(Released, OFFSETS),
    Settled: st.builds(Settled, OFFSETS),
    Cleared: st.builds(Cleared, OFFSET, st.sampled_from([0, 2**41])),
    Rewound: st.builds(Rewound, OFFSET),
    MoveIntended: MOVES,
    MoveEnded: st.builds(MoveEnded, st.integers(0, 500)),
    TaskBegun: st.builds(TaskBegun, st.binary(max_size=16), OFFSET),
    TaskEnded: st.builds(TaskEnded, st.sampled_from(["COMPLETED", "FAILED"]), st.text(max_size=20)),
}
DELTAS = st.builds(
    Delta,
    st.integers(0, 2**42),
    st.integers(0, 2**42),
    st.lists(st.one_of(*EVENTS.values()), max_size=6).map(tuple),
    OFFSET,
)


@st.composite
def states(draw: st.DrawFn) -> QueueState:
    """Anything that the fields can hold, whether or not a queue comes to it."""
    state = QueueState()
    state.log_ms, state.wall_ms, state.attempt = draw(COUNTS), draw(st.integers(0, 2**42)), draw(OFFSET)
    state.floor, state.cursor = draw(OFFSET), draw(OFFSET)
    state.settled = BitMap64(draw(st.lists(OFFSET, max_size=20)))
    for offset in draw(OFFSETS):
        times_ms = [draw(TIMES_MS) for _ in range(4)]
        state.entries[offset] = Entry(
            times_ms[0],
            receive_count=draw(COUNTS),
            attempt=draw(OFFSET),
            acquired_at_ms=times_ms[1],
            until_ms=times_ms[2],
            is_acquired=draw(st.booleans()),
            first_received_at_ms=times_ms[3],
            was_repeated=draw(st.booleans()),
        )
        state.touched.add(offset)
    for request_id in draw(st.sets(st.binary(min_size=1, max_size=9), max_size=3)):
        state.receives[request_id] = KeptReceive(draw(OFFSETS), draw(COUNTS), draw(TIMES_MS), draw(TIMES_MS))
    state.move = draw(st.none() | MOVES)
    state.task = draw(st.none() | TASKS)
    state.purged_at_ms = draw(COUNTS)
    state.producer = draw(st.sampled_from([(-1, -1), (77, 3)]))
    for partition in draw(st.sets(COUNTS, max_size=3)):
        state.sequences[bytes(16), partition] = draw(COUNTS)
    for key in draw(st.sets(st.binary(min_size=16, max_size=16), max_size=4)):
        state.deduplication.remember(key, draw(OFFSET), draw(TIMES_MS))
    marks = sorted(draw(st.sets(OFFSET, max_size=4)))
    state.sent_times = SentTimes((end, draw(TIMES_MS)) for end in marks)
    return state


def everything(state: QueueState) -> dict[str, object]:
    told = dict(vars(state))
    told["deduplication"] = list(state.deduplication)
    told["sent_times"] = list(state.sent_times)
    return told


@given(DELTAS)
def test_a_delta_comes_back_as_it_was(delta: Delta) -> None:
    assert decode_delta(encode_delta(delta)) == delta


def test_every_event_has_been_tried() -> None:
    assert set(EVENTS) == set(Event.__args__)


@settings(deadline=None)
@given(state=states(), piece_bytes=st.sampled_from([17, 20, 40, 1 << 20]))
def test_a_snapshot_comes_back_as_it_was_in_however_many_pieces(state: QueueState, piece_bytes: int) -> None:
    pieces = encode_snapshot(state, piece_bytes)
    assert all(len(piece) <= piece_bytes for piece in pieces)
    assert [decode_piece(piece).index for piece in pieces] == list(range(len(pieces)))
    replay = QueueReplay(QueueSettings())
    for piece in pieces:
        replay.read(piece)
    assert everything(replay.state) == everything(state)
    assert encode_snapshot(replay.state) == encode_snapshot(state), "the same state is the same bytes"


@given(first=states(), delta=DELTAS)
def test_pieces_without_the_last_one_are_nothing(first: QueueState, delta: Delta) -> None:
    pieces = encode_snapshot(first, 24)
    replay, sound = QueueReplay(QueueSettings()), QueueReplay(QueueSettings())
    for piece in pieces[:-1]:
        replay.read(piece)
    for each in (replay, sound):
        each.read(encode_delta(Delta(delta.log_ms, delta.wall_ms, (), delta.end_offset)))
    assert everything(replay.state) == everything(sound.state)
    with pytest.raises(InvalidRecord):  # the rest of a snapshot that something came between
        replay.read(pieces[-1])


DECODERS: dict[str, Callable[[bytes], object]] = {
    "delta": decode_delta,
    "piece": decode_piece,
    "state": lambda data: decode_state([data]),
    "record": lambda data: QueueReplay(QueueSettings()).read(data),
}


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
@settings(max_examples=300)
@given(
    data=st.binary(max_size=60), head=st.sampled_from([b"", b"\x00\x00", b"\x00\x01", b"\x00\x01\x00\x01"])
)
def test_garbage_is_refused_or_read_and_harms_nobody(
    decode: Callable[[bytes], object], data: bytes, head: bytes
) -> None:
    try:
        decode(head + data)
    except InvalidRecord:
        return


@pytest.mark.parametrize(
    "bitmap", [b"\x01", b"\x01" + bytes(9), b"\xff" * 40, BitMap64([1, 2]).serialize()[:-1]]
)
def test_a_garbled_set_of_settled_messages_is_refused(bitmap: bytes) -> None:
    whole = encode_snapshot(QueueState())[0]
    start = decode_piece(whole).data
    assert start[5:6] == b"\x00", "an empty set"
    with pytest.raises(InvalidRecord):
        decode_state([start[:5] + bytes([len(bitmap)]) + bitmap + start[6:]])


@pytest.mark.parametrize("event", [Passed(1 << 63), Settled((1 << 64,)), Settled((0, 1 << 68))])
def test_an_offset_that_no_log_has_is_refused(event: Event) -> None:
    with pytest.raises(InvalidRecord):
        decode_delta(encode_delta(Delta(1, 1, (event,))))


@settings(max_examples=300, deadline=None)
@given(value=DELTAS.map(encode_delta) | states().map(lambda state: encode_snapshot(state)[0]), data=st.data())
def test_bytes_that_changed_or_are_missing_are_refused_or_read(value: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(value) - 1))
    garbled = data.draw(
        st.sampled_from([value[:at], value[:at] + b"\xff" + value[at + 1 :], value + b"\x00"])
    )
    try:
        QueueReplay(QueueSettings()).read(garbled)
    except InvalidRecord:
        return
    assert garbled[:at] == value[:at]
