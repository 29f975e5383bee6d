"""Frames come out whole and in order however the network slices them, and memory follows what arrives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import (
    RECEIVE_BUFFER_BYTES_KEPT,
    RECEIVE_BUFFER_BYTES_MIN,
    RECEIVE_BUFFERS_SPARE_MAX,
    REQUEST_BYTES_MAX,
)
from ropewalk.kafka.receive_buffer import ReceiveBuffer, SpareBuffers

FRAME_BYTES_MAX = 1 << 20


def receive(buffer: ReceiveBuffer, data: bytes) -> list[bytes]:
    """Feed `data` as a transport would and collect the frames, as a connection does."""
    frames: list[bytes] = []
    while data:
        room = buffer.writable()
        taken = min(len(room), len(data))
        room[:taken] = data[:taken]
        data = data[taken:]
        buffer.on_received(taken)
        while (frame := buffer.next_frame()) is not None:
            frames.append(bytes(buffer.view[frame[0] : frame[1]]))
        buffer.settle()
    return frames


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


@given(st.lists(st.binary(min_size=1, max_size=300) | st.just(b"x" * 100_000), max_size=8), st.data())
def test_any_slicing_yields_the_same_frames(sent: list[bytes], data: st.DataObject) -> None:
    stream = framed(*sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    buffer = ReceiveBuffer(FRAME_BYTES_MAX, SpareBuffers())
    received: list[bytes] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += receive(buffer, stream[start:stop])
    assert received == sent


@pytest.mark.parametrize("length", [0, -1, FRAME_BYTES_MAX + 1, 2**31 - 1, -(2**31)])
def test_a_length_out_of_bounds_is_refused(length: int) -> None:
    with pytest.raises(ProtocolError, match=str(length)):
        receive(ReceiveBuffer(FRAME_BYTES_MAX, SpareBuffers()), length.to_bytes(4, "big", signed=True))


def test_an_announced_frame_costs_nothing_before_it_arrives() -> None:
    buffer = ReceiveBuffer(100 << 20, SpareBuffers())
    receive(buffer, (100 << 20).to_bytes(4, "big") + b"\0\0" + b"x" * 10)
    assert buffer.capacity_bytes == RECEIVE_BUFFER_BYTES_MIN


def test_a_buffer_grown_for_a_large_frame_is_given_back() -> None:
    buffer = ReceiveBuffer(100 << 20, SpareBuffers())
    receive(buffer, framed(b"\0\0" + b"x" * RECEIVE_BUFFER_BYTES_KEPT))
    assert buffer.capacity_bytes == 0


def test_a_busy_connection_keeps_the_buffer_that_fits_its_frames() -> None:
    buffer = ReceiveBuffer(FRAME_BYTES_MAX, SpareBuffers())
    receive(buffer, framed(b"x" * 3 * RECEIVE_BUFFER_BYTES_MIN))
    assert buffer.capacity_bytes == 4 * RECEIVE_BUFFER_BYTES_MIN
    buffer.release()
    assert buffer.capacity_bytes == 0


def test_connections_without_unread_bytes_share_one_buffer() -> None:
    spare = SpareBuffers()
    buffers = [ReceiveBuffer(FRAME_BYTES_MAX, spare) for _ in range(100)]
    for number, buffer in enumerate(buffers):
        assert receive(buffer, framed(b"%d" % number)) == [b"%d" % number]
    assert len(spare) == 1
    assert not any(buffer.capacity_bytes for buffer in buffers)


def test_half_a_frame_keeps_its_buffer_while_others_read() -> None:
    spare = SpareBuffers()
    half, other = ReceiveBuffer(FRAME_BYTES_MAX, spare), ReceiveBuffer(FRAME_BYTES_MAX, spare)
    assert receive(half, framed(b"first")[:6]) == []
    assert receive(other, framed(b"other")) == [b"other"]
    assert receive(half, framed(b"first")[6:]) == [b"first"]


def test_only_some_empty_buffers_are_kept() -> None:
    spare = SpareBuffers()
    buffers = [ReceiveBuffer(FRAME_BYTES_MAX, spare) for _ in range(RECEIVE_BUFFERS_SPARE_MAX + 5)]
    for buffer in buffers:
        receive(buffer, framed(b"x")[:2])
    for buffer in buffers:
        receive(buffer, framed(b"x")[2:])
    assert len(spare) == RECEIVE_BUFFERS_SPARE_MAX


def test_an_idle_buffer_keeps_no_memory_but_a_waiting_one_does() -> None:
    buffer = ReceiveBuffer(FRAME_BYTES_MAX, SpareBuffers())
    assert receive(buffer, framed(b"one")) == [b"one"]
    buffer.release()
    assert buffer.capacity_bytes == 0
    assert receive(buffer, b"\0\0") == []
    buffer.release()
    assert receive(buffer, b"\0\3two") == [b"two"]


def test_growth_stays_in_proportion_to_what_arrived() -> None:
    buffer = ReceiveBuffer(100 << 20, SpareBuffers())
    receive(buffer, (50 << 20).to_bytes(4, "big") + b"\0\0")
    arrived = 6
    for _ in range(40):
        receive(buffer, b"x" * 100_000)
        arrived += 100_000
        assert buffer.capacity_bytes <= max(RECEIVE_BUFFER_BYTES_MIN, 2 * arrived)


@pytest.mark.parametrize(("api_key", "allowed"), [(0, True), (1, False), (3, False)])
def test_only_produce_may_be_very_large(api_key: int, allowed: bool) -> None:
    buffer = ReceiveBuffer(100 << 20, SpareBuffers())
    announced = (REQUEST_BYTES_MAX + 1).to_bytes(4, "big") + api_key.to_bytes(2, "big")
    if allowed:
        assert receive(buffer, announced) == []
    else:
        with pytest.raises(ProtocolError, match="any but Produce"):
            receive(buffer, announced)
