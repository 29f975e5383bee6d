"""The HTTP listener: accepts connections and gives each its protocol."""

from ropewalk.base.ports import Listener, Network
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
        cls, network: Network, host: str, port: int, *, connections: HttpConnections, answer: Handle
    ) -> "HttpListener":
        """Raises `OSError` where the address cannot be had."""
        listener = await network.listen(lambda: HttpConnection(connections, answer), host, port)
        return cls(listener, connections)

    @property
    def address(self) -> tuple[str, int]:
        return self._listener.address

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

    def close(self) -> None:
        """Send what has been answered, then close."""
        self._connections.finish_all()

    def abort(self) -> None:
        """Close at once."""
        self._connections.abort_all()
