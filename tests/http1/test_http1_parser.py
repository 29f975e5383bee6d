"""The parser as properties: how bytes are cut makes no difference, and no bytes at all do worse than be refused."""

from http import HTTPStatus

from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.limits import HTTP_HEAD_BYTES_MAX
from ropewalk.http1.message import Request
from ropewalk.http1.parser import Refused, RequestParser

REQUESTS = st.lists(
    st.sampled_from(
        [
            b"GET / HTTP/1.1\r\nHost: n\r\n\r\n",
            b"HEAD /metrics?a=b&c HTTP/1.1\r\nHost: n\r\nX-Y: " + b"z" * 300 + b"\r\n\r\n",
            b"POST /livez HTTP/1.1\r\nHost: n\r\nContent-Length: 5\r\n\r\nhello",
            b"PUT /x HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            b"nonsense\r\n\r\n",
            b"GET /%ff HTTP/1.1\r\nHost: n\r\n\r\n",
        ]
    ),
    min_size=1,
    max_size=6,
)


def fed(pieces: list[bytes]) -> tuple[list[Request], HTTPStatus | None]:
    """All requests, and with what status the parser refused the rest."""
    parser = RequestParser()
    requests: list[Request] = []
    for piece in pieces:
        try:
            requests += parser.feed(piece)
        except Refused as refused:
            return requests + parser.take(), refused.status
    return requests, None


@settings(deadline=None)
@given(REQUESTS, st.lists(st.integers(1, 200), max_size=20))
def test_however_bytes_are_cut_the_requests_are_the_same(stream: list[bytes], sizes: list[int]) -> None:
    whole = b"".join(stream)
    pieces, position = [], 0
    for size in sizes:
        pieces.append(whole[position : position + size])
        position += size
    pieces.append(whole[position:])
    assert fed(pieces) == fed([whole])


@settings(deadline=None)
@given(st.lists(st.binary(max_size=2000), max_size=10))
def test_no_bytes_do_worse_than_be_refused(pieces: list[bytes]) -> None:
    requests, status = fed(pieces)
    assert status is None or 400 <= status < 500
    assert all(request.path for request in requests)


@settings(deadline=None)
@given(st.integers(1, 3000), st.sampled_from([b"a", b"a: ", b"a: b\r\n", b"\r\n"]))
def test_a_head_without_end_is_refused_in_whatever_pieces_it_comes(size: int, what: bytes) -> None:
    endless = what * (8 * HTTP_HEAD_BYTES_MAX // len(what))
    pieces = [endless[start : start + size] for start in range(0, len(endless), size)]
    requests, status = fed([b"GET / HTTP/1.1\r\nHost: n\r\n" if what != b"\r\n" else b"", *pieces])
    assert requests == []
    assert status in (HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, HTTPStatus.BAD_REQUEST)
