"""One HTTP/1.1 connection to a server: a request, its answer, and the next; or a request whose answer never ends.

What a reader could get wrong
    Once `request` has been called the server may have acted on it, whatever becomes of the answer.
    Whoever gives up waiting must `close`: the answer would be taken for that of the next request.
"""

import asyncio
from functools import partial
from typing import Final, cast

import httptools
from msgspec import Struct

from ropewalk.base.ports import Network, TlsContexts

_READ_AHEAD_BYTES_MAX: Final = 1 << 20


class Reply(Struct, frozen=True):
    status: int
    body: bytes


class ClientConnection(asyncio.Protocol):
    """Errors are `OSError`: the connection is lost, or what came is not HTTP."""

    def __init__(self, *, answer_bytes_max: int) -> None:
        self._answer_bytes_max = answer_bytes_max
        """Of one answer, or of one line where it is read by lines."""
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._has_ended = False
        self._is_paused = False
        self._lost: OSError | None = None
        self._wake: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls, network: Network, host: str, port: int, *, tls: TlsContexts | None, answer_bytes_max: int
    ) -> "ClientConnection":
        factory = partial(cls, answer_bytes_max=answer_bytes_max)
        _, connection = await network.connect(factory, host, port, tls=tls)
        assert isinstance(connection, ClientConnection)
        return connection

    @property
    def is_open(self) -> bool:
        return self._lost is None and self._transport is not None and not self._transport.is_closing()

    async def request(self, data: bytes) -> Reply:
        """Send a whole request, and wait for its whole answer."""
        self._send(data)
        while not self._has_ended:
            await self._more()
            if len(self._body) > self._answer_bytes_max:
                too_large = OSError(f"the answer is larger than {self._answer_bytes_max} bytes")
                self._fail(too_large)
                raise too_large  # also where its end has come with it
        answer = Reply(self._parser.get_status_code(), bytes(self._body))
        if not self._parser.should_keep_alive():
            self.close()
        return answer

    def begin(self, data: bytes) -> None:
        """Send a whole request whose answer is then read with `line`."""
        self._send(data)

    async def line(self) -> bytes | None:
        """The next line of the answer; None at its end."""
        while (end := self._body.find(b"\n")) < 0:
            if self._has_ended:
                rest, self._body = bytes(self._body), bytearray()
                return rest or None
            await self._more()
            if len(self._body) > self._answer_bytes_max:
                self._fail(OSError(f"a line is longer than {self._answer_bytes_max} bytes"))
        line = bytes(self._body[:end])
        del self._body[: end + 1]
        return line

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's and the simulator's transports are Transports in all but their ancestry.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(OSError(f"what came is not HTTP: {error}"))
        if len(self._body) > _READ_AHEAD_BYTES_MAX and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        self._ring()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = self._lost or ConnectionResetError(f"the connection was lost: {error or 'closed'}")
        self._ring()

    # What the parser calls

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        self._has_ended = True

    # The machine

    def _send(self, data: bytes) -> None:
        assert self._transport is not None, "a connection is used after it was made"
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._has_ended = False
        self._transport.write(data)

    async def _more(self) -> None:
        """Return when something has come since."""
        if self._lost is not None:
            raise self._lost
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        self._wake = asyncio.get_running_loop().create_future()
        await self._wake

    def _ring(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _fail(self, error: OSError) -> None:
        self._lost = self._lost or error
        self.close()
