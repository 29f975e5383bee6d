"""Hostile HTTP: what one connection sends, and which answers are due to it.

A volley follows from the seed and its number alone. The forecast is made with the node's own parser, fed at once, so that a node
that reads otherwise when bytes come in pieces, drops an answer or answers twice is found out.
"""

import random
import re
from typing import Final

from msgspec import Struct

from ropewalk.http1.parser import Refused, RequestParser
from ropewalk.node.http_door import BOUNDS

PAGES: Final = ("/", "/livez", "/public_metrics")
"""Those that are always 200."""

_METHODS: Final = (
    "GET",
    "GET",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "BREW",
    "get",
    "",
)
_TARGETS: Final = (
    *PAGES,
    *PAGES,
    "/nothing",
    "/a%20b?c=d&e",
    "http://n/livez",
    "https://m:1/",
    "ftp://n/",
    "*",
    "//x",
    "/%ff",
    "/%00",
    "/a#b",
    "x",
)
_VERSIONS: Final = ("1.1", "1.1", "1.1", "1.1", "1.0", "2.0", "0.9", "1.2", "x")
_HEADERS: Final = (
    "Connection: close",
    "Connection: keep-alive",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA",
    "Content-Length: 3",
    "Content-Length: 03",
    "Content-Length: -3",
    "Content-Length: 99999999999999999999",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding: \tchunked",
    "Expect: 100-continue",
    "Expect: the-best",
    "Host: other",
    "Cookie: " + "c" * 2000,
    "X: " + "y" * 20_000,
    "X: \xff\xfe",
    "X: a\r\n folded",
    ": nameless",
    "colonless",
)
_GRAFTS: Final = (
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\x00",
    b" ",
    b"\t",
    b":",
    b"0\r\n\r\n",
    b"\xff",
    b"GET / HTTP/1.1\r\n",
)


class Due(Struct, frozen=True):
    status: int
    has_body: bool


class HttpVolley(Struct, frozen=True):
    pieces: tuple[bytes, ...]
    due: tuple[Due, ...]


def volley(seed: int, number: int) -> HttpVolley:
    rng = random.Random(f"http {seed} {number}")
    sent = b"".join(_request(rng) for _ in range(rng.choice((1, 1, 2, 3, 5, 20))))
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 5))):
        sent = _mutated(rng, sent)
    return HttpVolley(_cut(rng, sent), forecast(sent))


def forecast(sent: bytes) -> tuple[Due, ...]:
    parser = RequestParser(BOUNDS)
    parser.feed(sent)
    due: list[Due] = []
    try:
        while (request := parser.next()) is not None:
            status = 404 if request.path not in PAGES else 200 if request.method in ("GET", "HEAD") else 405
            due.append(Due(status, request.method != "HEAD"))
            if not request.keeps_alive:
                return tuple(due)
    except Refused as refused:
        due.append(Due(refused.status.value, True))
    return tuple(due)


def taken_apart(received: bytes, due: tuple[Due, ...]) -> list[int]:
    """The statuses of all answers; raises `ValueError` for what is no answer, or is not whole."""
    statuses: list[int] = []
    while received:
        match = re.match(rb"HTTP/1\.1 (\d{3}) [^\r\n]+\r\n((?:[a-z-]+: [^\r\n]*\r\n)*)\r\n", received)
        if match is None:
            raise ValueError(f"{received[:100]!r} is no answer")
        status, received = int(match[1]), received[match.end() :]
        if status == 100:
            continue
        length = re.search(rb"^content-length: (\d+)\r$", match[2], re.MULTILINE)
        if length is None or len(statuses) >= len(due):
            raise ValueError(f"{match[0][:200]!r} is not due, or has no length")
        if due[len(statuses)].has_body:
            if len(received) < int(length[1]):
                raise ValueError(f"an answer of {int(length[1])} bytes has {len(received)}")
            received = received[int(length[1]) :]
        statuses.append(status)
    return statuses


def _request(rng: random.Random) -> bytes:
    if rng.random() < 0.02:
        return rng.randbytes(rng.choice((1, 30, 3000)))
    version = rng.choice(_VERSIONS)
    lines = [f"{rng.choice(_METHODS)} {rng.choice(_TARGETS)} HTTP/{version}"]
    if rng.random() < 0.95:
        lines.append("Host: n")
    body = b""
    kind = rng.random()
    if kind < 0.2:
        body = rng.randbytes(rng.choice((0, 1, 100, 5000, 70_000)))
        lines.append(f"Content-Length: {len(body)}")
    elif kind < 0.4:
        lines.append("Transfer-Encoding: chunked")
        sizes = [rng.choice((1, 1, 16, 300, 9000)) for _ in range(rng.choice((0, 1, 5, 50)))]
        body = b"".join(
            b"%x%b\r\n%b\r\n" % (size, rng.choice((b"", b"", b";a=b", b" ")), rng.randbytes(size))
            for size in sizes
        )
        body += rng.choice(
            (b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"-1\r\n", b"fffffffffffffffff\r\n")
        )
    if rng.random() < 0.4:
        lines += rng.choices(_HEADERS, k=rng.choice((1, 1, 2, 200)))
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _mutated(rng: random.Random, sent: bytes) -> bytes:
    position = rng.randrange(len(sent) + 1)
    match rng.randrange(5):
        case 0:
            return sent[:position] + rng.choice(_GRAFTS) + sent[position:]
        case 1:
            return sent[:position] + sent[position + rng.choice((1, 2, 10)) :]
        case 2:
            return sent[:position] + bytes([rng.randrange(256)]) + sent[position + 1 :]
        case 3:
            return sent[:position] + sent[max(0, position - 50) :]
        case _:
            return sent[:position]


def _cut(rng: random.Random, sent: bytes) -> tuple[bytes, ...]:
    if rng.random() < 0.5:
        return (sent,)
    ends = sorted(rng.randrange(len(sent) + 1) for _ in range(rng.choice((1, 3, 20))))
    return tuple(sent[start:end] for start, end in zip([0, *ends], [*ends, len(sent)], strict=True))
