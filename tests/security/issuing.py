"""A server of an authority on the simulated network: it shows keys to whoever asks, or what else a test wants of it."""

import asyncio
from typing import cast

from ropewalk.base.ports import Listener
from ropewalk.sim.machines.world import World
from tests.security.signing import RSA, AnyKey, jwks

HOST = "issuer"
PORT = 8080
PATH = "/realms/rope/certs?kind=all"


class Issuer:
    def __init__(self, *keys: AnyKey, host: str = HOST) -> None:
        self.body = jwks(*(keys or (RSA,)))
        self.status = 200
        self.is_silent = False
        self.requests: list[str] = []
        self._host = host
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        return f"http://{self._host}:{PORT}{PATH}"

    def show(self, *keys: AnyKey) -> None:
        self.body = jwks(*keys)

    async def start(self, world: World) -> "Issuer":
        self._listener = await world.network.host(self._host).listen(lambda: _Answer(self), self._host, PORT)
        return self

    def stop(self) -> None:
        assert self._listener is not None
        self._listener.stop()


class _Answer(asyncio.Protocol):
    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        issuer = self._issuer
        self._received += data
        if not self._received.endswith(b"\r\n\r\n"):
            return
        issuer.requests.append(self._received.decode())
        if issuer.is_silent:
            return
        head = f"HTTP/1.1 {issuer.status} X\r\nlocation: http://elsewhere/\r\ncontent-length: {len(issuer.body)}\r\n\r\n"
        self._transport.write(head.encode() + issuer.body)
