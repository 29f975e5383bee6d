"""The bytes of one connection that are not handled yet, in place.

Frames are handed out as positions in the buffer and never copied: a record batch goes from the socket to
the log without another copy on the way.

What a reader could get wrong
    A frame's bytes are valid only until control returns to the connection. Whoever must keep them copies them.
    A length prefix is only a claim. The buffer grows with the bytes that arrive, not with what was announced,
    so announcing two gigabytes costs four bytes.
    Only Produce carries bytes that are passed on as they are. Any other request is turned into objects, up to some
    thirty times its size, so it may be much smaller than a Produce.
"""

from struct import Struct
from typing import Final

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import RECEIVE_BUFFER_BYTES_KEPT, RECEIVE_BUFFER_BYTES_MIN, REQUEST_BYTES_MAX

_unpack_length: Final = Struct(">i").unpack_from
_unpack_api_key: Final = Struct(">h").unpack_from
_PRODUCE: Final = 0


class ReceiveBuffer:
    __slots__ = ("_buffer", "_end", "_start", "frame_bytes_max", "view")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self.view = memoryview(self._buffer)
        self._start = 0
        self._end = 0

    @property
    def capacity_bytes(self) -> int:
        return len(self._buffer)

    @property
    def unhandled_bytes(self) -> int:
        return self._end - self._start

    def writable(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._end == len(self._buffer):
            self._make_room()
        return self.view[self._end :]

    def on_received(self, count_bytes: int) -> None:
        self._end += count_bytes

    def next_frame(self) -> tuple[int, int] | None:
        """Start and end of the next whole frame, without its length prefix, or None until more has come."""
        start = self._start
        available = self._end - start
        if available < 4:
            return None
        (size,) = _unpack_length(self.view, start)
        if not 0 < size <= self.frame_bytes_max:
            raise ProtocolError(
                f"a frame of {size} bytes was announced, 1 to {self.frame_bytes_max} are allowed"
            )
        if (
            size > REQUEST_BYTES_MAX
            and available >= 6
            and _unpack_api_key(self.view, start + 4)[0] != _PRODUCE
        ):
            raise ProtocolError(
                f"a request of {size} bytes was announced, {REQUEST_BYTES_MAX} are allowed for any but Produce"
            )
        if available < 4 + size:
            return None
        end = start + 4 + size
        self._start = end
        return start + 4, end

    def settle(self) -> None:
        """Call when no frame of this buffer is being looked at: makes the free space contiguous where that is cheap."""
        if self._start == self._end:
            self._start = self._end = 0
            if len(self._buffer) > RECEIVE_BUFFER_BYTES_KEPT:
                self._replace(RECEIVE_BUFFER_BYTES_MIN)

    def release(self) -> None:
        """An idle connection keeps no memory."""
        if self._start == self._end and self._buffer:
            self._start = self._end = 0
            self._replace(0)

    def _make_room(self) -> None:
        """The buffer is full to its end with an incomplete frame: move it to the front, or grow."""
        unhandled = self._end - self._start
        if self._start > 0 and self._start >= unhandled and self._start >= len(self._buffer) // 2:
            self.view[:unhandled] = self.view[self._start : self._end]
            self._start, self._end = 0, unhandled
            return
        self._replace(max(RECEIVE_BUFFER_BYTES_MIN, 2 * len(self._buffer)))

    def _replace(self, capacity: int) -> None:
        """A new buffer, because views of the present one may still be held somewhere."""
        unhandled = self._end - self._start
        buffer = bytearray(capacity)
        buffer[:unhandled] = self.view[self._start : self._end]
        self._buffer = buffer
        self.view = memoryview(buffer)
        self._start, self._end = 0, unhandled
