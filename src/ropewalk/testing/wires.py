"""The connections between the nodes of a cluster for tests, which can be cut.

What a reader could get wrong
    Every connection between two nodes is made by one of them, so to know those that were made is to know them all. A cut ends them and refuses
    others; both ends notice at once, unlike with a cable that somebody pulls. Clients reach a node that is cut off as before.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Sequence

from ropewalk.base.ports import Listener, Network, Networks, TlsContexts
from ropewalk.runtime.network import TcpNetwork


class Wires:
    def __init__(self) -> None:
        self._nodes: dict[int, int] = {}
        """Who listens for other nodes at which port."""
        self._cut_off: set[int] = set()
        self._made: list[tuple[int, int, asyncio.BaseTransport]] = []

    def add(self, node_id: int, port: int) -> Network:
        """The node's network."""
        self._nodes[port] = node_id
        return _WiredNetwork(self, node_id)

    def cut(self, node_id: int) -> None:
        self._cut_off.add(node_id)
        for one, other, transport in self._made:
            if node_id in (one, other):
                _abort(transport)
        self._forget_closed()

    def heal(self, node_id: int) -> None:
        self._cut_off.discard(node_id)

    def is_cut(self, node_id: int) -> bool:
        return node_id in self._cut_off

    def other_end(self, node_id: int, port: int) -> int | None:
        """Which node that would be; raises `OSError` where one of the two is cut off."""
        other = self._nodes.get(port)
        if other is not None and {node_id, other} & self._cut_off:
            raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
        return other

    def keep(self, node_id: int, other: int, transport: asyncio.BaseTransport) -> None:
        """Raises `OSError` where one of the two was cut off meanwhile."""
        self._forget_closed()
        if {node_id, other} & self._cut_off:
            _abort(transport)
            raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
        self._made.append((node_id, other, transport))

    def _forget_closed(self) -> None:
        self._made = [each for each in self._made if not each[2].is_closing()]


class _WiredNetwork:
    def __init__(self, wires: Wires, node_id: int) -> None:
        self._wires = wires
        self._node_id = node_id
        self._network = TcpNetwork()

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
        takes_plain: Callable[[], bool] | None = None,
        proxies: Networks = (),
    ) -> Listener:
        return await self._network.listen(
            factory, host, port, tls=tls, takes_plain=takes_plain, proxies=proxies
        )

    async def connect(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        other = self._wires.other_end(self._node_id, port)
        transport, protocol = await self._network.connect(factory, host, port, tls=tls)
        if other is not None:
            self._wires.keep(self._node_id, other, transport)
        return transport, protocol

    async def resolve(self, host: str) -> Sequence[str]:
        return await self._network.resolve(host)


def _abort(transport: asyncio.BaseTransport) -> None:
    abort: Callable[[], None] = getattr(transport, "abort", transport.close)
    abort()
