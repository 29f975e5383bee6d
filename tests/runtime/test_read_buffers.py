"""Read buffers: used again when no view of them is left, and never before."""

import sys

import pytest

from ropewalk.base.limits import READ_BUFFER_BYTES_MIN
from ropewalk.runtime.buffers import ReadBuffers


def test_a_buffer_that_nobody_looks_at_is_used_again() -> None:
    buffers = ReadBuffers()
    first = buffers.take(10)
    backing = first.obj
    del first
    assert buffers.take(READ_BUFFER_BYTES_MIN).obj is backing


def test_a_buffer_is_not_used_again_while_a_part_of_it_is_looked_at_however_references_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "getrefcount", lambda _: 3)
    buffers = ReadBuffers()
    part = buffers.take(100)[40:50]
    part[:] = b"0123456789"
    others = [buffers.take(100) for _ in range(5)]
    for other in others:
        other[:] = bytes(100)
    assert bytes(part) == b"0123456789"
    assert len({id(view.obj) for view in (part, *others)}) == 6


def test_a_buffer_keeps_its_size_when_it_was_asked_whether_it_is_free() -> None:
    buffers = ReadBuffers()
    for _ in range(3):
        view = buffers.take(READ_BUFFER_BYTES_MIN)
        assert isinstance(view.obj, bytearray)
        assert len(view.obj) == READ_BUFFER_BYTES_MIN
        del view


def test_what_may_not_be_kept_is_still_given() -> None:
    buffers = ReadBuffers(kept_bytes=READ_BUFFER_BYTES_MIN)
    kept, more = buffers.take(1), buffers.take(1)
    backing = more.obj
    del more
    assert kept.obj is not backing
    assert buffers.take(1).obj is not kept.obj
