"""A client's HTTP connection as small as can be: one request, its answer, and the next; any trouble ends it.

The simulator judges the node, so this shares nothing with the client that ships.
"""

import asyncio
from typing import Final

from msgspec import Struct

from ropewalk.base.ports import Network

CONNECT_S: Final = 1.0


class HttpLost(Exception):
    """The connection is gone; whether the request on it took effect is not known."""


class HttpAnswer(Struct, frozen=True):
    status: int
    body: bytes


class HttpLink(asyncio.Protocol):
    """Made by `open_http_link`."""

    def __init__(self, name: str) -> None:
        self.is_open = False
        self._name = name
        self._transport: asyncio.Transport
        self._received = bytearray()
        self._answer: asyncio.Future[HttpAnswer] | None = None

    def ask(self, data: bytes) -> "asyncio.Future[HttpAnswer]":
        """A whole request; the future is its answer, or `HttpLost`."""
        assert self._answer is None or self._answer.done(), "one request after the other"
        answer = self._answer = asyncio.get_running_loop().create_future()
        if self.is_open:
            self._transport.write(data)
        else:
            answer.set_exception(HttpLost(self._name))
        return answer

    def close(self) -> None:
        """At once, whatever is under way."""
        if not self.is_open:
            return
        self.is_open = False
        self._transport.abort()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(HttpLost(self._name))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_open = True

    def connection_lost(self, _: Exception | None) -> None:
        self.close()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = bytes(self._received).partition(b"\r\n\r\n")
        if not end:
            return
        status, headers = _read_head(head)
        body_bytes = int(headers.get("content-length", "0"))
        if len(rest) < body_bytes:
            return
        del self._received[: len(head) + len(end) + body_bytes]
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(HttpAnswer(status, rest[:body_bytes]))
        if headers.get("connection") == "close":
            self.close()


async def open_http_link(network: Network, name: str, address: tuple[str, int]) -> HttpLink:
    """Raises `HttpLost`."""
    link = HttpLink(name)
    try:
        async with asyncio.timeout(CONNECT_S):
            await network.connect(lambda: link, *address)
    except OSError as error:  # among them TimeoutError
        link.close()
        raise HttpLost(str(error)) from error
    return link


def _read_head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return int(first.split(" ")[1]), {name.lower(): value.strip().lower() for name, _, value in pairs}
