"""Frames come out whole however the stream is sliced, and a length out of bounds ends it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.frames import FrameReader, frame
from tests.wire.invented import examples


@given(st.lists(st.binary(max_size=20)), st.data())
@examples(100)
def test_any_slicing_yields_the_same_frames(sent: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(len(body).to_bytes(4, "big") + body for body in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    reader = FrameReader(frame_bytes_max=20)
    received: list[memoryview] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += reader.feed(stream[start:stop])
    assert received == sent


@pytest.mark.parametrize("length", [21, 2**31 - 1, -1, -(2**31)])
def test_a_length_out_of_bounds_is_refused_before_its_bytes_arrive(length: int) -> None:
    reader = FrameReader(frame_bytes_max=20)
    with pytest.raises(ProtocolError, match=f"a frame of {length} bytes"):
        reader.feed(length.to_bytes(4, "big", signed=True))


def test_frames_stay_as_they_were_while_more_arrives() -> None:
    reader = FrameReader(frame_bytes_max=20)
    (first,) = reader.feed(b"\0\0\0\x05first\0\0\0\x06sec")
    assert reader.feed(b"ond") == [b"second"]
    assert bytes(first) == b"first"


@given(st.lists(st.binary(max_size=9)))
@examples(30)
def test_a_frame_is_its_length_and_then_the_chunks_untouched(chunks: list[bytes]) -> None:
    length, *rest = frame(chunks)
    assert all(ours is theirs for ours, theirs in zip(rest, chunks, strict=True))
    assert FrameReader(frame_bytes_max=10_000).feed(bytes(length) + b"".join(chunks)) == [b"".join(chunks)]
