"""The Kafka listener: accepts connections and gives each its protocol."""

from ropewalk.base.budget import ByteBudget
from ropewalk.base.ports import Listener, Network
from ropewalk.kafka.connection import Connection
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.served import ServedApi


class KafkaListener:
    def __init__(self, listener: Listener, connections: Connections, budget: ByteBudget) -> None:
        """Use `start`."""
        self._listener = listener
        self._connections = connections
        self._budget = budget

    @classmethod
    async def start(
        cls,
        network: Network,
        host: str,
        port: int,
        *,
        connections: Connections,
        served: dict[int, ServedApi],
        budget: ByteBudget,
    ) -> "KafkaListener":
        """Raises `OSError` where the address cannot be had."""
        listener = await network.listen(lambda: Connection(connections, served, budget), host, port)
        return cls(listener, connections, budget)

    @property
    def address(self) -> tuple[str, int]:
        return self._listener.address

    def sweep(self) -> None:
        """Called every few seconds: ends connections that are silent too long, or hold a budget that is spent."""
        self._connections.sweep()
        self._connections.relieve(self._budget)

    def stop(self) -> None:
        """Accept no more. Connections live on until `close`."""
        self._listener.stop()

    def pause(self) -> None:
        """Answer nobody until `resume`. Connections stay open; one made meanwhile waits like the others."""
        self._connections.pause()

    def resume(self) -> None:
        self._connections.resume()

    def close(self) -> None:
        """Send what has been answered, then close."""
        self._connections.finish_all()

    def abort(self) -> None:
        """Close at once."""
        self._connections.close_all()
