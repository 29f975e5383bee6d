"""Answers come out whole however the network slices them, and what was handed out is never received over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import READ_BUFFER_BYTES_MIN
from ropewalk.client.connections.frame_buffer import FrameBuffer
from tests.wire.invented import examples

FRAME_BYTES_MAX = 4 * READ_BUFFER_BYTES_MIN


def receive(buffer: FrameBuffer, data: bytes) -> list[memoryview]:
    """As an event loop does it: as much at a time as there is room for."""
    frames: list[memoryview] = []
    while data:
        room = buffer.room()
        taken = min(len(room), len(data))
        assert taken, "there is always room"
        room[:taken] = data[:taken]
        frames += buffer.on_received(taken)
        data = data[taken:]
    return frames


def body(number: int, size: int) -> bytes:
    return bytes([number % 256]) * size


sizes = st.one_of(
    st.integers(0, 40),
    st.integers(READ_BUFFER_BYTES_MIN - 10, READ_BUFFER_BYTES_MIN + 10),
    st.integers(0, FRAME_BYTES_MAX),
)


@given(st.lists(sizes, max_size=12), st.data())
@examples(60)
def test_any_slicing_yields_the_same_frames(lengths: list[int], data: st.DataObject) -> None:
    sent = [body(number, size) for number, size in enumerate(lengths)]
    stream = b"".join(len(each).to_bytes(4, "big") + each for each in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    buffer = FrameBuffer(frame_bytes_max=FRAME_BYTES_MAX)
    received: list[memoryview] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += receive(buffer, stream[start:stop])
    assert [bytes(each) for each in received] == sent


@given(st.lists(st.tuples(sizes, st.booleans()), max_size=40))
@examples(30)
def test_frames_that_are_kept_stay_as_they_were(frames: list[tuple[int, bool]]) -> None:
    buffer = FrameBuffer(frame_bytes_max=FRAME_BYTES_MAX)
    kept: list[tuple[memoryview, bytes]] = []
    for number, (size, is_kept) in enumerate(frames):
        sent = body(number, size)
        (received,) = receive(buffer, len(sent).to_bytes(4, "big") + sent)
        if is_kept:
            kept.append((received, sent))
        del received
    assert all(bytes(received) == sent for received, sent in kept)


@pytest.mark.parametrize("length", [FRAME_BYTES_MAX + 1, 2**31 - 1, -1, -(2**31)])
def test_a_length_out_of_bounds_is_refused_before_its_bytes_arrive(length: int) -> None:
    buffer = FrameBuffer(frame_bytes_max=FRAME_BYTES_MAX)
    with pytest.raises(ProtocolError, match=f"a frame of {length} bytes"):
        receive(buffer, length.to_bytes(4, "big", signed=True))


def test_memory_is_used_again_once_nobody_looks_at_it() -> None:
    buffer = FrameBuffer(frame_bytes_max=FRAME_BYTES_MAX)
    seen = set()
    for number in range(20):
        sent = body(number, 3 * READ_BUFFER_BYTES_MIN)
        (received,) = receive(buffer, len(sent).to_bytes(4, "big") + sent)
        seen.add(id(received.obj))
        del received
    assert len(seen) == 1
