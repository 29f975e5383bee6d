"""Frames: four bytes of length, then that many bytes.

Brokers and clients cut frames in place from the buffers they receive into; `FrameReader` is for whoever does not mind a copy.
"""

from collections.abc import Iterable
from struct import Struct as Layout
from typing import Final

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.types import Buffer

LENGTH: Final = Layout(">i")
"""The length in front of every frame, which does not count itself."""


_SPOKEN: Final = {
    b"GET ": "it is a request in HTTP",
    b"HEAD": "it is a request in HTTP",
    b"POST": "it is a request in HTTP",
    b"PUT ": "it is a request in HTTP",
    b"OPTI": "it is a request in HTTP",
    b"PROX": "it is a PROXY header, which is taken from proxy.protocol.networks alone",
    b"\r\n\r\n": "it is a PROXY header, which is taken from proxy.protocol.networks alone",
    b"PRI ": "it is a request in HTTP/2",
    b"HTTP": "it is an answer in HTTP: that port is not for Kafka's protocol",
    b"SSH-": "it is the greeting of an SSH server",
}
_TLS: Final = {
    0x15: "it is an alert of TLS: that port wants TLS",
    0x16: "it is the hello of TLS: this side speaks no TLS",
}


def refusal(size: int, frame_bytes_max: int, *, frame_bytes_min: int = 0) -> ProtocolError:
    """For a length that no frame has. Bytes of another protocol are recognised by what they say where the length should be."""
    prefix = LENGTH.pack(size)
    spoken = _SPOKEN.get(prefix)
    if spoken is None and prefix[1] == 3:  # the version in a record of TLS
        spoken = _TLS.get(prefix[0])
    if spoken is not None:
        return ProtocolError(f"what was received is no frame: {spoken}")
    return ProtocolError(
        f"a frame of {size} bytes was announced, {frame_bytes_min} to {frame_bytes_max} are allowed"
    )


class FrameReader:
    r"""Cuts a byte stream into frames, however the network happened to slice it.

    >>> reader = FrameReader(frame_bytes_max=64)
    >>> reader.feed(b"\x00\x00\x00\x02h"), [bytes(frame) for frame in reader.feed(b"i")]
    ([], [b'hi'])

    A frame stays valid for as long as it is kept, and keeps what arrived with it in memory.
    """

    __slots__ = ("_frame_bytes_max", "_received")

    def __init__(self, *, frame_bytes_max: int) -> None:
        self._received = bytearray()
        self._frame_bytes_max = frame_bytes_max

    def feed(self, data: Buffer) -> list[memoryview]:
        """The frames that `data` completes. A length out of bounds is refused as soon as it is seen."""
        received = self._received
        received += data
        stops = self._stops(received)
        if not stops:
            return []
        # Whole frames are handed out as views, and a buffer with views cannot grow: the rest moves to a fresh one.
        self._received = received[stops[-1] :]
        view = memoryview(received)
        starts = [0, *stops[:-1]]
        return [view[start + LENGTH.size : stop] for start, stop in zip(starts, stops, strict=True)]

    def _stops(self, received: bytearray) -> list[int]:
        stops = []
        position = 0
        while position + LENGTH.size <= len(received):
            (size,) = LENGTH.unpack_from(received, position)
            if not 0 <= size <= self._frame_bytes_max:
                raise refusal(size, self._frame_bytes_max)
            position += LENGTH.size + size
            if position > len(received):
                break
            stops.append(position)
        return stops


def frame(chunks: Iterable[Buffer]) -> list[Buffer]:
    """The chunks with their length in front, ready to be written one after the other."""
    body = list(chunks)
    return [LENGTH.pack(sum(map(len, body))), *body]
