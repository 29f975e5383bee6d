"""Requests that are read in one go: as those that are read with all care, or left to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.message import Request
from ropewalk.http1.parser import Refused, RequestParser
from ropewalk.http1.whole_request import read_whole

BOUNDS = HttpBounds(connections_max=1, body_bytes_max=1 << 16)
USUAL = b"POST / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 2\r\nX-Amz-Target: AmazonSQS.SendMessage\r\n\r\n{}"


def with_care(data: bytes) -> Request | None:
    """As the parser reads it that reads all others: what is fed in two pieces is not whole."""
    parser = RequestParser(BOUNDS)
    parser.feed(data[:1])
    assert parser.next() is None
    parser.feed(data[1:])
    request = parser.next()
    assert request is None or parser.is_empty, "it was the only one"
    return request


def test_a_usual_request_is_read_in_one_go() -> None:
    found = read_whole(USUAL, BOUNDS)
    assert found == with_care(USUAL)
    assert found is not None
    assert (found.headers["host"], found.body) == ("h:1", b"{}")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(USUAL[:-1], id="a body that is not whole"),
        pytest.param(USUAL + USUAL, id="another behind it"),
        pytest.param(USUAL.replace(b"Host", b"Hast"), id="no host"),
        pytest.param(USUAL.replace(b"Host: h:1", b"Host: h:1\r\nhost: h:1"), id="two hosts"),
        pytest.param(USUAL.replace(b"Length: 2", b"Length: +2"), id="a length with a sign"),
        pytest.param(USUAL.replace(b"Length: 2", b"Length: 2\r\nTransfer-Encoding: chunked"), id="chunks"),
        pytest.param(USUAL.replace(b"Length: 2", b"Length: 2\r\nExpect: 100-continue"), id="an expectation"),
        pytest.param(USUAL.replace(b"Length: 2", b"Length: 2\r\nConnection: close"), id="the last of it"),
        pytest.param(USUAL.replace(b"Length: 2", b"Length: 2\r\n folded"), id="a folded header"),
        pytest.param(USUAL.replace(b"X-Amz-Target:", b"X-Amz-Target :"), id="a blank before the colon"),
        pytest.param(USUAL.replace(b"h:1", b"h:1\n"), id="a bare line feed"),
        pytest.param(USUAL.replace(b"h:1", b"h\xe4:1"), id="no ASCII"),
        pytest.param(USUAL.replace(b"HTTP/1.1", b"HTTP/1.0"), id="HTTP/1.0"),
        pytest.param(USUAL.replace(b"POST /", b"POST /queue"), id="another address"),
        pytest.param(USUAL.replace(b"h:1", b"h" * BOUNDS.head_bytes_max), id="a long head"),
        pytest.param(USUAL.replace(b"h:1", b"h:1" + b"\r\na: b" * 200), id="many headers"),
    ],
)
def test_what_is_unusual_is_left_to_the_parser(data: bytes) -> None:
    assert read_whole(data, BOUNDS) is None


ODD_BYTES = [b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b": ", b"\0", b"a", b"2", b"0", b"\xff"]
ODD_LINES = [
    b"Host: h\r\n",
    b"Content-Length: 2\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"connection: Keep-Alive\r\n",
    b"Upgrade: x\r\n",
    b"Expect: 100-continue\r\n",
    b"a:\r\n",
    b"a:  b  \r\n",
    b"a: b c\r\n",
]
PIECES = st.sampled_from([*ODD_BYTES, *ODD_LINES])


@given(st.lists(st.tuples(st.integers(0, len(USUAL)), st.integers(0, 3), PIECES), max_size=4))
def test_what_is_read_in_one_go_is_what_is_read_with_care(changes: list[tuple[int, int, bytes]]) -> None:
    data = bytearray(USUAL)
    for position, removed, piece in changes:
        data[position : position + removed] = piece
    found = read_whole(bytes(data), BOUNDS)
    if found is None:
        return
    try:
        assert found == with_care(bytes(data))
    except Refused as refused:
        raise AssertionError(f"{bytes(data)!r} is to be refused") from refused
