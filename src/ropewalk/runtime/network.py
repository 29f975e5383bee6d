"""TCP through the running event loop, which in the simulator is an in-memory network."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial

from ropewalk.base.limits import LISTEN_BACKLOG
from ropewalk.base.ports import Networks, TlsContexts
from ropewalk.runtime.proxied import ProxiedListening
from ropewalk.runtime.tls import with_tls
from ropewalk.runtime.tls_or_plain import listen_by


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
    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
        takes_plain: Callable[[], bool] | None = None,
        proxies: Networks = (),
    ) -> TcpListener:
        loop = asyncio.get_running_loop()
        made: Callable[[], asyncio.BaseProtocol] = factory
        if tls is not None:
            made = listen_by(tls, takes_plain).wrap(made)
        if proxies:
            made = ProxiedListening(proxies).wrap(made)
        server = await loop.create_server(made, host, port, backlog=LISTEN_BACKLOG)
        return TcpListener(server)

    async def connect(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        connect = partial(asyncio.get_running_loop().create_connection, host=host, port=port)
        return await (connect(factory) if tls is None else with_tls(connect, factory, tls(), host))

    async def resolve(self, host: str) -> list[str]:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))
