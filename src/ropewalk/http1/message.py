"""A request as a handler sees it, an answer as a handler makes it, and the bytes of the answer's head.

What a reader could get wrong
    A handler may wait for as long as it likes; to hear when its client goes, it waits inside `Visitor.hold_while`.
    A stream is asked for its next piece only when the client has taken most of those before it. `end` is called once, whatever
    comes first: its last piece, the loss of the client, or the end of the door.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, Protocol

from msgspec import Struct

from ropewalk.base.flow import Waiting

TEXT: Final = "text/plain; charset=utf-8"
NO_STORE: Final = "no-store"
"""What a health check, a scrape or a queue says is true now and not later."""

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
_BEGINNINGS_MAX: Final = 64
"""Of heads, that are remembered: some for each status and sort of content, and others in the next second."""
_BODILESS: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class Request(Struct, frozen=True):
    method: str
    path: str
    """Decoded; begins with a slash, or is `*`."""

    query: Mapping[str, str]
    """The last value of each name; a name alone has an empty one."""

    keeps_alive: bool
    """Whether the client wants to go on with this connection."""

    headers: Mapping[str, str] = {}
    """By name in lower case. Values of a name that came more than once are joined with commas, as the standard has it."""

    body: bytes = b""
    target: str = "/"
    """Path and query as they were sent, for whoever has to check a signature over them."""

    host: str = ""
    """Whom the client asked: the authority of an absolute address, or else its Host."""

    is_http_1_0: bool = False
    """Such a client knows no chunks."""


class Stream(Protocol):
    """The body of an answer that is made while it is being sent: a large file, or events as they come."""

    async def next(self) -> bytes | None:
        """The next piece, None at the end. Waits for futures only (`runtime/steps.py`)."""

    def end(self) -> None:
        """Nothing more is wanted. A `next` that waits may return anything; it is not sent."""


class Answer(Struct, frozen=True):
    status: HTTPStatus
    chunks: Sequence[bytes] = ()
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    cache: str = NO_STORE


class StreamedAnswer(Struct, frozen=True):
    status: HTTPStatus
    stream: Stream
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    cache: str = NO_STORE
    length_bytes: int | None = None
    """Of all pieces together; None where nobody knows beforehand. Sent in chunks then, or until the connection closes."""


class Holdable(Protocol):
    def begin_wait(self, waiting: Waiting) -> None: ...

    def end_wait(self, waiting: Waiting) -> None: ...


class Visitor:
    """Who sent a request, as far as a handler may know, and what it may ask of the connection."""

    __slots__ = ("_connection", "address")

    def __init__(self, connection: Holdable, address: str) -> None:
        self._connection = connection
        self.address = address
        """Without the port."""

    def begin_wait(self, waiting: Waiting) -> None:
        """As `hold_while`, for those who wait across several calls. Each has its `end_wait`."""
        self._connection.begin_wait(waiting)

    def end_wait(self, waiting: Waiting) -> None:
        self._connection.end_wait(waiting)

    @contextmanager
    def hold_while(self, waiting: Waiting) -> Iterator[None]:
        """For a request that waits, as a long poll does: `waiting` hears when the client goes away."""
        self._connection.begin_wait(waiting)
        try:
            yield
        finally:
            self._connection.end_wait(waiting)


Handle = Callable[[Request, Visitor], Coroutine[Any, None, Answer | StreamedAnswer]]


def text_answer(status: HTTPStatus, text: str, *headers: tuple[str, str]) -> Answer:
    """One or more lines for a person."""
    return Answer(status, (text.encode() + b"\n",), headers=headers)


def encode_head(
    answer: Answer | StreamedAnswer, *, keeps_alive: bool, date: str, is_chunked: bool = False
) -> bytes:
    """`is_chunked` for a stream whose length nobody knows, to a client that knows chunks."""
    rest = ""
    if answer.status not in _BODILESS:
        if isinstance(answer, Answer):
            chunks = answer.chunks
            size_bytes = len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))
            rest = f"content-length: {size_bytes}\r\n"
        elif answer.length_bytes is not None:
            rest = f"content-length: {answer.length_bytes}\r\n"
        elif is_chunked:
            rest = "transfer-encoding: chunked\r\n"
    for name, value in answer.headers:
        assert value.isprintable(), "a header is one line"
        rest += f"{name}: {value}\r\n"
    beginning = _beginning(answer.status, answer.content_type, answer.cache, date, keeps_alive)
    return f"{beginning}{rest}\r\n".encode("latin-1")


@lru_cache(maxsize=_BEGINNINGS_MAX)
def _beginning(status: HTTPStatus, content_type: str, cache: str, date: str, keeps_alive: bool) -> str:
    """Of a head: the same for all answers of a second that are of one sort."""
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"date: {date}"]
    if status not in _BODILESS:
        lines.append(f"content-type: {content_type}")
    lines += [
        f"cache-control: {cache}",
        "x-content-type-options: nosniff",
        f"connection: {'keep-alive' if keeps_alive else 'close'}",
    ]
    assert not any("\r" in line or "\n" in line for line in lines), "a header is one line"
    return "\r\n".join(lines) + "\r\n"


def has_body(answer: Answer | StreamedAnswer, request_method: str) -> bool:
    return request_method != "HEAD" and answer.status not in _BODILESS


def encode_chunk(piece: bytes) -> Sequence[bytes]:
    """Never for an empty piece: that would be the last."""
    return (b"%x\r\n" % len(piece), piece, b"\r\n")
