"""The parser as properties: how bytes are cut makes no difference, and no bytes at all do worse than be refused."""

from http import HTTPStatus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.limits import HTTP_HEAD_BYTES_MAX
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.message import Request
from ropewalk.http1.parser import Refused, RequestParser

BOUNDS = HttpBounds(connections_max=1, body_bytes_max=10_000)

REQUESTS = st.lists(
    st.sampled_from(
        [
            b"GET / HTTP/1.1\r\nHost: n\r\n\r\n",
            b"HEAD /metrics?a=b&c HTTP/1.1\r\nHost: n\r\nX-Y: " + b"z" * 300 + b"\r\n\r\n",
            b"POST /livez HTTP/1.1\r\nHost: n\r\nContent-Length: 5\r\n\r\nhello",
            b"PUT /x HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            b"PUT /x HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n"
            + 50 * b"a\r\n0123456789\r\n"
            + b"0\r\nX: y\r\n\r\n",
            b"POST /large HTTP/1.1\r\nHost: n\r\nExpect: 100-continue\r\nContent-Length: 9000\r\n\r\n"
            + bytes(9000),
            b"POST /h2c HTTP/1.1\r\nHost: n\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
            b"GET http://other:81/absolute?x=%20 HTTP/1.1\r\nHost: n\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: n\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"nonsense\r\n\r\n",
            b"GET /%ff HTTP/1.1\r\nHost: n\r\n\r\n",
        ]
    ),
    min_size=1,
    max_size=6,
)


def fed(pieces: list[bytes]) -> tuple[list[Request], HTTPStatus | None]:
    """All requests, and with what status the parser refused the rest."""
    parser = RequestParser(BOUNDS)
    requests: list[Request] = []
    for piece in pieces:
        parser.feed(piece)
        try:
            while (request := parser.next()) is not None:
                requests.append(request)
        except Refused as refused:
            return requests, refused.status
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
    assert status is None or 400 <= status <= 505
    assert all(request.path for request in requests)


@settings(deadline=None)
@given(st.integers(1, 3000), st.sampled_from([b"a", b"a: ", b"a: b\r\n", b"\r\n"]))
def test_a_head_without_end_is_refused_in_whatever_pieces_it_comes(size: int, what: bytes) -> None:
    endless = what * (8 * HTTP_HEAD_BYTES_MAX // len(what))
    pieces = [endless[start : start + size] for start in range(0, len(endless), size)]
    requests, status = fed([b"GET / HTTP/1.1\r\nHost: n\r\n" if what != b"\r\n" else b"", *pieces])
    assert requests == []
    assert status in (HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, HTTPStatus.BAD_REQUEST)


def head(*lines: str, first: str = "POST /x?y=1 HTTP/1.1") -> bytes:
    return "\r\n".join([first, "Host: n", *lines, "", ""]).encode()


CHUNKED = head("Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(head("Content-Length: 1", "Transfer-Encoding: chunked"), 400, id="length, then chunks"),
        pytest.param(
            head("Transfer-Encoding: chunked", "Content-Length: 1"), 400, id="chunks, then a length"
        ),
        pytest.param(head("Content-Length: 1", "Content-Length: 1") + b"a", 400, id="two lengths"),
        pytest.param(head("Content-Length: 1, 1") + b"a", 400, id="a list of lengths"),
        pytest.param(head("Content-Length: +1") + b"a", 400, id="a length with a sign"),
        pytest.param(head("Content-Length: 0x1") + b"a", 400, id="a length in hexadecimal"),
        pytest.param(head("Content-Length:"), 400, id="no length"),
        pytest.param(head(f"Content-Length: {1 << 70}"), 400, id="a length beyond all bounds"),
        pytest.param(head("Content-Length: 10001"), 413, id="a length beyond ours, before the body"),
        pytest.param(head("Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n", 501, id="compressed"),
        pytest.param(
            head("Transfer-Encoding: identity", "Transfer-Encoding: chunked"), 400, id="two codings"
        ),
        pytest.param(head("Transfer-Encoding: xchunked"), 501, id="almost chunked"),
        pytest.param(head("Transfer-Encoding : chunked"), 400, id="a space before the colon"),
        pytest.param(head("Transfer-Encoding: \x0bchunked"), 400, id="a control character"),
        pytest.param(
            head("Transfer-Encoding: chunked", first="POST / HTTP/1.0"), 400, id="chunks in HTTP/1.0"
        ),
        pytest.param(CHUNKED + b"zz\r\n", 400, id="no size of a chunk"),
        pytest.param(CHUNKED + b"-1\r\n", 400, id="a negative chunk"),
        pytest.param(CHUNKED + b"0x1\r\na\r\n", 400, id="a chunk with 0x"),
        pytest.param(CHUNKED + b"1 \r\na\r\n", 400, id="a chunk with a space"),
        pytest.param(CHUNKED + b"1" * 17 + b"\r\n", 400, id="a chunk that overflows"),
        pytest.param(CHUNKED + b"1\na\n0\n\n", 400, id="chunks with line feeds alone"),
        pytest.param(CHUNKED + b"1\r\nab\r\n", 400, id="a chunk longer than it says"),
        pytest.param(CHUNKED + b"1;" + b"e" * 200_000, 413, id="a chunk's extension without end"),
        pytest.param(CHUNKED + b"2711\r\n" + bytes(10_001), 413, id="a chunk beyond our bound"),
        pytest.param(CHUNKED + 10_001 * b"1\r\na\r\n", 413, id="many chunks beyond our bound"),
        pytest.param(
            CHUNKED + b"0\r\n" + 4000 * b"X: yyyyyy\r\n", 431, id="headers behind the body without end"
        ),
        pytest.param(b"GET / HTTP/1.1\nHost: n\n\n", 400, id="line feeds alone"),
        pytest.param(head("X: a\r\n b"), 400, id="a folded header"),
        pytest.param(head("X: a\rb"), 400, id="a bare carriage return"),
        pytest.param(head("X: a\x00b"), 400, id="a zero in a header"),
        pytest.param(head("Host: m"), 400, id="two hosts"),
        pytest.param(head(*(f"X{n}: y" for n in range(200))), 431, id="many headers"),
        pytest.param(head("Expect: 200-ok"), 417, id="an expectation"),
        pytest.param(head(first="GET * HTTP/1.1"), 400, id="GET of everything"),
        pytest.param(head(first="GET ftp://n/x HTTP/1.1"), 400, id="another scheme"),
        pytest.param(head(first="GET /a#b HTTP/1.1"), 400, id="a fragment"),
        pytest.param(head(first="GET /a%00b HTTP/1.1"), 400, id="a zero in a path"),
        pytest.param(head(first="GET / HTTP/2.0"), 505, id="HTTP/2 in HTTP/1's clothes"),
        pytest.param(head(first="TRACE / HTTP/1.1"), 501, id="TRACE"),
        pytest.param(head(first="CONNECT n:1 HTTP/1.1"), 501, id="CONNECT"),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20], ids=["byte by byte", "at once"])
def test_what_could_be_read_in_two_ways_is_refused(sent: bytes, status: int, size: int) -> None:
    pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    assert fed(pieces) == ([], status)


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (head("Content-Length: 5") + b"hello", b"hello"),
        (CHUNKED + b"2\r\nhe\r\n3;ext=1\r\nllo\r\n0\r\nX-Sum: 1\r\n\r\n", b"hello"),
        (CHUNKED + 10_000 * b"1\r\na\r\n" + b"0\r\n\r\n", 10_000 * b"a"),
        (head("Content-Length: 10000") + bytes(10_000), bytes(10_000)),
        (head("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 5") + b"hello", b"hello"),
    ],
)
def test_a_body_is_kept_however_it_is_sent(sent: bytes, body: bytes) -> None:
    (first, second), status = fed([sent + sent])
    assert status is None
    assert first == second
    assert (first.body, first.target, first.query, first.host) == (body, "/x?y=1", {"y": "1"}, "n")


def test_headers_are_kept_by_name() -> None:
    (request,), _ = fed([head("X-A: 1", "x-a:  2 ", "X-B: \t", "Authorization: AWS4 x/y")])
    assert request.headers == {"host": "n", "x-a": "1,2", "x-b": "", "authorization": "AWS4 x/y"}


def test_an_absolute_address_says_whom_the_client_asked() -> None:
    (request,), _ = fed([b"GET http://queues:81/a%20b?c=d HTTP/1.1\r\nHost: other\r\n\r\n"])
    assert (request.host, request.path, request.target) == ("queues:81", "/a b", "/a%20b?c=d")


def test_few_requests_are_made_of_bytes_before_they_are_asked_for() -> None:
    parser = RequestParser(BOUNDS)
    parser.feed(50_000 * b"GET / HTTP/1.1\r\nHost: n\r\n\r\n")
    parser.next()
    assert len(parser._ready) < 200


def test_a_refusal_is_one_whatever_else_is_being_handled() -> None:
    """The parser says what went wrong in a callback by the exception's context, which is another's while one is handled."""
    parser = RequestParser(BOUNDS)
    parser.feed(head(first="GET /%ff HTTP/1.1"))
    try:
        raise StopIteration
    except StopIteration:
        with pytest.raises(Refused, match="is no address"):
            parser.next()
