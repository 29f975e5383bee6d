"""A length that no frame has, and what its bytes say where another protocol was spoken."""

import pytest

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.frames import FrameReader


@pytest.mark.parametrize(
    ("received", "words"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n", "a request in HTTP", id="a browser"),
        pytest.param(b"HTTP/1.1 400 Bad Request", "an answer in HTTP", id="the port for metrics"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01", "the hello of TLS", id="a client with TLS"),
        pytest.param(b"\x15\x03\x03\x00\x02", "an alert of TLS", id="a port with TLS"),
        pytest.param(b"\x7f\xff\xff\xff", "2147483647 bytes was announced", id="too long"),
        pytest.param(b"\xff\xff\xff\xff", "-1 bytes was announced", id="less than nothing"),
    ],
)
def test_what_is_no_frame_is_called_by_its_name(received: bytes, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        FrameReader(frame_bytes_max=100 << 20).feed(received)
