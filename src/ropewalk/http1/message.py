"""A request as a handler sees it, an answer as a handler makes it, and the bytes of the answer's head."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct

TEXT: Final = "text/plain; charset=utf-8"


class Request(Struct, frozen=True):
    method: str
    path: str
    """Decoded; never empty."""

    query: Mapping[str, str]
    """The last value of each name; a name alone has an empty one."""

    keeps_alive: bool
    """Whether the client wants to go on with this connection."""


class Answer(Struct, frozen=True):
    status: HTTPStatus
    chunks: Sequence[bytes]
    content_type: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()


Handle = Callable[[Request], Coroutine[Any, None, Answer]]


def text_answer(status: HTTPStatus, text: str, *headers: tuple[str, str]) -> Answer:
    """One or more lines for a person."""
    return Answer(status, (text.encode() + b"\n",), headers=headers)


def encode_head(answer: Answer, *, keeps_alive: bool) -> bytes:
    """What a health check or a scrape says is true now and not later, so nothing is cached."""
    lines = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"content-type: {answer.content_type}",
        f"content-length: {sum(map(len, answer.chunks))}",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        f"connection: {'keep-alive' if keeps_alive else 'close'}",
        *(f"{name}: {value}" for name, value in answer.headers),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
