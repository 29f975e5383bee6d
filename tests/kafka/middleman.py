"""Whoever stands between two nodes: connections that come to it go on to another, by TLS or not on either side."""

import asyncio
from collections.abc import Callable
from typing import cast

from ropewalk.base.ports import Network, TlsContexts
from ropewalk.client.connections.address import Address

Rewrite = Callable[[bytes], bytes]


class _End(asyncio.Protocol):
    """One side of a relayed connection."""

    def __init__(self, relay: "Middleman") -> None:
        self.relay = relay
        self.other: _End | None = None
        self.transport: asyncio.Transport | None = None
        self.kept: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.relay.overheard.append(data)
        self.say(data)

    def say(self, data: bytes) -> None:
        if self.other is None or self.other.transport is None:
            self.kept.append(data)
        else:
            self.other.transport.write(data)

    def connection_lost(self, _: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class Middleman:
    def __init__(self, network: Network, target: Address, *, calls_by: TlsContexts | None) -> None:
        self.overheard: list[bytes] = []
        self._network = network
        self._target = target
        self._calls_by = calls_by
        self._begun: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int, *, tls: TlsContexts | None) -> Address:
        await self._network.listen(self._accept, host, port, tls=tls)
        return Address(host, port)

    def _accept(self) -> asyncio.Protocol:
        came = _End(self)
        going = asyncio.get_running_loop().create_task(self._go_on(came))
        self._begun.add(going)
        return came

    async def _go_on(self, came: _End) -> None:
        gone = _End(self)
        gone.other = came
        try:
            await self._network.connect(
                lambda: gone, self._target.host, self._target.port, tls=self._calls_by
            )
        except OSError:
            if came.transport is not None:
                came.transport.abort()
            return
        came.other = gone
        kept, came.kept = came.kept, []
        for data in kept:
            came.say(data)
