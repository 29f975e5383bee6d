"""A bare HTTP client over the Network port: bytes out, bytes in, and answers taken apart by the standard library's rules."""

import asyncio
from email.parser import BytesHeaderParser
from typing import NamedTuple

from ropewalk.base.ports import Network


class Page(NamedTuple):
    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Line(asyncio.Protocol):
    """One connection. What arrives gathers in `received`."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._more: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport
        self.keeps_open = False
        """Whether this end stays open when the other has nothing more to say."""
        self.lost: Exception | None = None

    @classmethod
    async def open(cls, network: Network, host: str = "node", port: int = 9644) -> "Line":
        transport, line = await network.connect(cls, host, port)
        assert isinstance(line, Line)
        line.transport = transport  # type: ignore[assignment]  # the simulator's, or uvloop's
        return line

    def data_received(self, data: bytes) -> None:
        self.received += data
        self._wake()

    def eof_received(self) -> bool:
        return self.keeps_open

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = error
        if not self.closed.done():
            self.closed.set_result(None)
        self._wake()

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    async def page(self, *, has_body: bool = True) -> Page:
        """The next answer; raises EOFError if the connection ends before it is whole."""
        while b"\r\n\r\n" not in self.received:
            await self._wait()
        head, _, _ = bytes(self.received).partition(b"\r\n\r\n")
        first, _, rest = head.partition(b"\r\n")
        fields = BytesHeaderParser().parsebytes(rest)
        headers = {name.lower(): str(value) for name, value in fields.items()}
        if has_body and headers.get("transfer-encoding") == "chunked":
            del self.received[: len(head) + 4]
            return Page(int(first.split()[1]), headers, await self._chunks())
        end = len(head) + 4 + (int(headers["content-length"]) if has_body else 0)
        while len(self.received) < end:
            await self._wait()
        body = bytes(self.received[len(head) + 4 : end])
        del self.received[:end]
        return Page(int(first.split()[1]), headers, body)

    async def get(self, path: str, *, method: str = "GET") -> Page:
        self.send(f"{method} {path} HTTP/1.1\r\nHost: node\r\n\r\n".encode())
        return await self.page(has_body=method != "HEAD")

    async def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            while b"\r\n" not in self.received:
                await self._wait()
            size_text, _, _ = bytes(self.received).partition(b"\r\n")
            start, size = len(size_text) + 2, int(size_text, 16)
            while len(self.received) < start + size + 2:
                await self._wait()
            body += self.received[start : start + size]
            assert self.received[start + size : start + size + 2] == b"\r\n"
            del self.received[: start + size + 2]
            if not size:
                return bytes(body)

    async def _wait(self) -> None:
        if self.closed.done():
            raise EOFError(f"closed after {bytes(self.received[:100])!r}")
        self._more = asyncio.get_running_loop().create_future()
        await self._more

    def _wake(self) -> None:
        if not self._more.done():
            self._more.set_result(None)
