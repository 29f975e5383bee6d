"""Answers as they come in: received in place, and cut into frames without another copy.

What a reader could get wrong
    A frame stays valid for as long as it is kept, and keeps what arrived with it in memory: nothing is ever received over
    bytes that somebody still looks at.
    As soon as the length of a frame is known that does not fit, it gets a buffer of exactly its size, so that megabytes of
    records are moved once, out of the socket.
"""

from typing import Final

from ropewalk.base.limits import CLIENT_BUFFERS_KEPT_BYTES, READ_BUFFER_BYTES_MIN
from ropewalk.runtime.buffers import ReadBuffers
from ropewalk.wire.frames import LENGTH, refusal

_NOTHING: Final = memoryview(bytearray())


class FrameBuffer:
    __slots__ = ("_buffers", "_end", "_frame_bytes_max", "_start", "_view")

    def __init__(self, *, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffers = ReadBuffers(kept_bytes=CLIENT_BUFFERS_KEPT_BYTES)
        self._view = _NOTHING
        self._start = 0
        """Where the first frame begins that has not been handed out."""
        self._end = 0

    def room(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._end == len(self._view):
            self._move(READ_BUFFER_BYTES_MIN)
        return self._view[self._end :]

    def on_received(self, count_bytes: int) -> list[memoryview]:
        """The frames that these bytes complete. A length out of bounds is refused as soon as it is seen."""
        self._end += count_bytes
        view, start, end = self._view, self._start, self._end
        frames: list[memoryview] = []
        while end - start >= LENGTH.size:
            (size,) = LENGTH.unpack_from(view, start)
            if not 0 <= size <= self._frame_bytes_max:
                raise refusal(size, self._frame_bytes_max)
            stop = start + LENGTH.size + size
            if stop > end:
                self._start = start
                if stop > len(view):
                    self._move(LENGTH.size + size)
                return frames
            frames.append(view[start + LENGTH.size : stop])
            start = stop
        self._start = start
        return frames

    def _move(self, size: int) -> None:
        """Go on in another buffer, with what has come of the next frame."""
        rest = self._view[self._start : self._end] if self._start < self._end else _NOTHING
        self._view = _NOTHING  # which frees it, if nobody looks at it any more
        moved = self._buffers.take(max(size, READ_BUFFER_BYTES_MIN))
        moved[: len(rest)] = rest
        self._view, self._start, self._end = moved, 0, len(rest)
