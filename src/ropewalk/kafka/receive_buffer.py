"""The bytes of one connection that are not handled yet, in place.

Frames are handed out as positions in the buffer and never copied: a record batch goes from the socket to
the log without another copy on the way.

What a reader could get wrong
    A frame's bytes are valid only until control returns to the connection. Whoever must keep them copies them.
    A length prefix is only a claim. The buffer grows with the bytes that arrive, not with what was announced,
    so announcing two gigabytes costs four bytes.
    Only Produce, and what nodes forward to each other, carries bytes that are passed on as they are. Any other request is turned
    into objects, up to some thirty times its size, so it may not be as large.
    A buffer with nothing in it goes to the next connection that has something to read, so ten thousand silent
    connections hold none. `settle` may not be called while somebody still looks at a frame.
"""

from collections.abc import Container
from struct import Struct
from typing import Final

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import (
    RECEIVE_BUFFER_BYTES_KEPT,
    RECEIVE_BUFFER_BYTES_MIN,
    RECEIVE_BUFFERS_SPARE_MAX,
    REQUEST_BYTES_MAX,
)
from ropewalk.wire.frames import refusal

_unpack_length: Final = Struct(">i").unpack_from
_unpack_api_key: Final = Struct(">h").unpack_from
PRODUCE: Final = 0
_NOTHING: Final = memoryview(bytearray())


class SpareBuffers:
    """Empty buffers of the smallest size, for whichever connection reads next."""

    __slots__ = ("_spare",)

    def __init__(self) -> None:
        self._spare: list[memoryview] = []

    def __len__(self) -> int:
        return len(self._spare)

    def take(self) -> memoryview:
        return self._spare.pop() if self._spare else memoryview(bytearray(RECEIVE_BUFFER_BYTES_MIN))

    def give_back(self, buffer: memoryview) -> None:
        if len(self._spare) < RECEIVE_BUFFERS_SPARE_MAX:
            self._spare.append(buffer)


class ReceiveBuffer:
    __slots__ = ("_end", "_large_api_keys", "_spare", "_start", "frame_bytes_max", "view")

    def __init__(
        self, frame_bytes_max: int, spare: SpareBuffers, large_api_keys: Container[int] = (PRODUCE,)
    ) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._large_api_keys = large_api_keys
        self.view = _NOTHING
        self._spare = spare
        self._start = 0
        self._end = 0

    @property
    def capacity_bytes(self) -> int:
        return len(self.view)

    @property
    def unhandled_bytes(self) -> int:
        return self._end - self._start

    def writable(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._end == len(self.view):
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
            raise refusal(size, self.frame_bytes_max, frame_bytes_min=1)
        if (
            size > REQUEST_BYTES_MAX
            and available >= 6
            and _unpack_api_key(self.view, start + 4)[0] not in self._large_api_keys
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
        """Call when no frame of this buffer is being looked at: lets go of an empty one, unless it has grown to fit."""
        if self._start != self._end:
            return
        self._start = self._end = 0
        capacity = len(self.view)
        if capacity == RECEIVE_BUFFER_BYTES_MIN:
            self._spare.give_back(self.view)
            self.view = _NOTHING
        elif capacity > RECEIVE_BUFFER_BYTES_KEPT:
            self.view = _NOTHING

    def release(self) -> None:
        """A connection that has been silent keeps nothing, whatever its buffer had grown to."""
        if self._start == self._end:
            self._start = self._end = 0
            self.view = _NOTHING

    def _make_room(self) -> None:
        """The buffer is full to its end with an incomplete frame: move it to the front, or grow."""
        if not self.view:
            self.view = self._spare.take()
            return
        unhandled = self._end - self._start
        if self._start > 0 and self._start >= unhandled and self._start >= len(self.view) // 2:
            self.view[:unhandled] = self.view[self._start : self._end]
        else:
            # A new one, because views of the present one may still be held somewhere.
            grown = memoryview(bytearray(2 * len(self.view)))
            grown[:unhandled] = self.view[self._start : self._end]
            self.view = grown
        self._start, self._end = 0, unhandled
