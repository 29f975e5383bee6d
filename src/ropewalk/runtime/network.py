"""TCP through the running event loop, which in the simulator is an in-memory network."""

import asyncio
import socket
import ssl
from collections.abc import Callable

from ropewalk.base.limits import LISTEN_BACKLOG


class TcpListener:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        host, port = server.sockets[0].getsockname()[:2]
        self._address = (str(host), int(port))

    @property
    def address(self) -> tuple[str, int]:
        return self._address

    def stop(self) -> None:
        self._server.close()


class TcpNetwork:
    async def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> TcpListener:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(factory, host, port, backlog=LISTEN_BACKLOG)
        return TcpListener(server)

    async def connect(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        return await asyncio.get_running_loop().create_connection(factory, host, port, ssl=tls)

    async def resolve(self, host: str) -> list[str]:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))
