"""The HTTP listener: accepts connections and gives each its protocol."""

import asyncio
from collections.abc import Sequence

from ropewalk.base.ports import Listener, Network, Networks, TlsContexts
from ropewalk.http1.connection import HttpConnection
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.message import Handle


class HttpListener:
    def __init__(self, listener: Listener, connections: HttpConnections) -> None:
        """Use `start`."""
        self._listener = listener
        self._connections = connections

    @classmethod
    async def start(
        cls,
        network: Network,
        host: str,
        port: int,
        *,
        connections: HttpConnections,
        answer: Handle,
        tls: TlsContexts | None = None,
        proxies: Networks = (),
    ) -> "HttpListener":
        """Raises `OSError` where the address cannot be had."""
        listener = await network.listen(
            lambda: HttpConnection(connections, answer), host, port, tls=tls, proxies=proxies
        )
        return cls(listener, connections)

    @property
    def address(self) -> tuple[str, int]:
        return self._listener.address

    @property
    def addresses(self) -> Sequence[tuple[str, int]]:
        return (self.address,)

    def sweep(self) -> None:
        self._connections.sweep()

    def pause(self) -> None:
        """Answer nobody until `resume`, as a node that hangs."""
        self._connections.pause()

    def resume(self) -> None:
        self._connections.resume()

    def stop(self) -> None:
        """Accept no more. Connections live on until `close`."""
        self._listener.stop()

    def hasten(self) -> "asyncio.Future[None]":
        """Answer those who wait with what there is, and each connection for the last time. Done when nobody is owed an answer."""
        return self._connections.hasten()

    def close(self) -> None:
        """Send what has been answered, then close."""
        self._connections.finish_all()

    def abort(self) -> None:
        """Close at once."""
        self._connections.abort_all()
