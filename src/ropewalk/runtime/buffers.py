"""Read buffers that are used again as soon as nobody looks at them.

A fetch response is a megabyte that lives for a few hundred microseconds. Allocating it anew costs the
kernel a page fault and a zeroed page for every 4 KiB, which is more than the copy itself. So buffers
are kept, and one is free when no view of it is left: the transport drops its views when the bytes are in the socket.

What a reader could get wrong
    Whether a view is left is asked of the buffer itself: a bytearray refuses to be resized with `BufferError` while somebody
    has a view of it, however that is held. The number of references to an object tells no such thing.
"""

from ropewalk.base.limits import READ_BUFFER_BYTES_MIN, READ_BUFFERS_KEPT_BYTES


class ReadBuffers:
    """Belongs to one thread. `take` never fails: what cannot be kept is allocated and forgotten."""

    def __init__(self, *, kept_bytes: int = READ_BUFFERS_KEPT_BYTES) -> None:
        self._buffers: list[bytearray] = []
        self._kept_bytes_max = kept_bytes
        self._kept_bytes = 0

    def take(self, size: int) -> memoryview:
        """A writable view of exactly `size` bytes with arbitrary content."""
        for buffer in self._buffers:
            if len(buffer) >= size and _is_free(buffer):
                return memoryview(buffer)[:size]
        capacity = max(READ_BUFFER_BYTES_MIN, 1 << (size - 1).bit_length())
        buffer = bytearray(capacity)
        if self._kept_bytes + capacity <= self._kept_bytes_max:
            self._buffers.append(buffer)
            self._kept_bytes += capacity
        return memoryview(buffer)[:size]


def _is_free(buffer: bytearray) -> bool:
    """Whether no view of it exists. Its size is as before afterwards, and nothing is moved."""
    try:
        last = buffer.pop()
    except BufferError:
        return False
    buffer.append(last)
    return True
