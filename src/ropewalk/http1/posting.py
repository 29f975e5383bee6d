"""One POST to an address, on a connection of its own.

What a reader could get wrong
    A status of 2xx is a success, anything else a failure. Redirects are not followed: whoever answers could send the body anywhere.
    The trust store of the machine is read with the first address that is https.
"""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from ropewalk.base.ports import Network, Pool
from ropewalk.http1.client import ClientConnection

ADDRESS_PATTERN: Final = r"https?://[^\s/?#@]+(/[^\s#]*)?"
"""Of addresses that may be posted to."""

_PORTS: Final = {"http": 80, "https": 443}


class Poster:
    def __init__(self, network: Network, pool: Pool, *, answer_ms_max: int, answer_bytes_max: int) -> None:
        self._network = network
        self._pool = pool
        self._answer_ms_max = answer_ms_max
        self._answer_bytes_max = answer_bytes_max
        self._tls: ssl.SSLContext | None = None

    async def post(self, address: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """JSON. Raises `OSError`, `ssl.SSLError` among them, unless it was taken."""
        url = urlsplit(address)
        if url.scheme == "https" and self._tls is None:
            self._tls = await self._pool.run(ssl.create_default_context)
        tls = self._tls if url.scheme == "https" else None
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        head = (
            f"POST {target} HTTP/1.1\r\nHost: {url.netloc}\r\nUser-Agent: ropewalk\r\nContent-Type: application/json\r\n"
            f"{more}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        async with asyncio.timeout(self._answer_ms_max / 1000):
            connection = await ClientConnection.open(
                self._network,
                url.hostname or "",
                url.port or _PORTS[url.scheme],
                tls=None if tls is None else lambda: tls,
                answer_bytes_max=self._answer_bytes_max,
            )
            try:
                answer = await connection.request(head.encode() + body)
            finally:
                connection.close()
        if not 200 <= answer.status < 300:
            raise OSError(f"{url.netloc} answered with status {answer.status}")
