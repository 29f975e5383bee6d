"""Frames come out whole and in order however the network slices them, and memory follows what arrives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import RECEIVE_BUFFER_BYTES_KEPT, RECEIVE_BUFFER_BYTES_MIN, REQUEST_BYTES_MAX
from ropewalk.kafka.receive_buffer import ReceiveBuffer

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
    buffer = ReceiveBuffer(FRAME_BYTES_MAX)
    received: list[bytes] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += receive(buffer, stream[start:stop])
    assert received == sent


@pytest.mark.parametrize("length", [0, -1, FRAME_BYTES_MAX + 1, 2**31 - 1, -(2**31)])
def test_a_length_out_of_bounds_is_refused(length: int) -> None:
    with pytest.raises(ProtocolError, match=str(length)):
        receive(ReceiveBuffer(FRAME_BYTES_MAX), length.to_bytes(4, "big", signed=True))


def test_an_announced_frame_costs_nothing_before_it_arrives() -> None:
    buffer = ReceiveBuffer(100 << 20)
    receive(buffer, (100 << 20).to_bytes(4, "big") + b"\0\0" + b"x" * 10)
    assert buffer.capacity_bytes == RECEIVE_BUFFER_BYTES_MIN


def test_a_buffer_grown_for_a_large_frame_is_given_back() -> None:
    buffer = ReceiveBuffer(100 << 20)
    receive(buffer, framed(b"\0\0" + b"x" * RECEIVE_BUFFER_BYTES_KEPT))
    assert buffer.capacity_bytes == RECEIVE_BUFFER_BYTES_MIN


def test_an_idle_buffer_keeps_no_memory_but_a_waiting_one_does() -> None:
    buffer = ReceiveBuffer(FRAME_BYTES_MAX)
    assert receive(buffer, framed(b"one")) == [b"one"]
    buffer.release()
    assert buffer.capacity_bytes == 0
    assert receive(buffer, b"\0\0") == []
    buffer.release()
    assert receive(buffer, b"\0\3two") == [b"two"]


def test_growth_stays_in_proportion_to_what_arrived() -> None:
    buffer = ReceiveBuffer(100 << 20)
    receive(buffer, (50 << 20).to_bytes(4, "big") + b"\0\0")
    arrived = 6
    for _ in range(40):
        receive(buffer, b"x" * 100_000)
        arrived += 100_000
        assert buffer.capacity_bytes <= max(RECEIVE_BUFFER_BYTES_MIN, 2 * arrived)


@pytest.mark.parametrize(("api_key", "allowed"), [(0, True), (1, False), (3, False)])
def test_only_produce_may_be_very_large(api_key: int, allowed: bool) -> None:
    buffer = ReceiveBuffer(100 << 20)
    announced = (REQUEST_BYTES_MAX + 1).to_bytes(4, "big") + api_key.to_bytes(2, "big")
    if allowed:
        assert receive(buffer, announced) == []
    else:
        with pytest.raises(ProtocolError, match="any but Produce"):
            receive(buffer, announced)
