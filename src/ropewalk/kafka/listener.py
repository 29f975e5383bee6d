"""The Kafka listeners: they accept connections and give each its protocol."""

import asyncio
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from ropewalk.base.budget import ByteBudget
from ropewalk.base.ports import Listener, Network, Networks
from ropewalk.kafka.connection import Connection
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.served import ServedApi
from ropewalk.kafka.terms import PLAIN, ListenerTerms


class ListenAt(Struct, frozen=True):
    host: str
    port: int
    terms: ListenerTerms


class CannotListenAt(OSError):
    """`host` and `port` cannot be had."""

    def __init__(self, error: OSError, host: str, port: int) -> None:
        super().__init__(error.errno, error.strerror or str(error))
        self.host = host
        self.port = port


class KafkaListener:
    """Several addresses whose connections are counted together."""

    def __init__(self, listeners: Sequence[Listener], connections: Connections, budget: ByteBudget) -> None:
        """Use `start`."""
        self._listeners = listeners
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
        """At one address, for whoever comes. Raises `OSError` where the address cannot be had."""
        place = ListenAt(host, port, PLAIN)
        return await cls.start_all(network, (place,), connections=connections, served=served, budget=budget)

    @classmethod
    async def start_all(
        cls,
        network: Network,
        places: Sequence[ListenAt],
        *,
        connections: Connections,
        served: dict[int, ServedApi],
        budget: ByteBudget,
        proxies: Networks = (),
    ) -> "KafkaListener":
        """`proxies` are the networks of those that connect for clients. Raises `CannotListenAt`, and then listens nowhere."""
        listeners: list[Listener] = []
        for place in places:
            accept = partial(Connection, connections, served, budget, place.terms)
            try:
                listeners.append(
                    await network.listen(accept, place.host, place.port, tls=place.terms.tls, proxies=proxies)
                )
            except OSError as error:
                for listener in listeners:
                    listener.stop()
                raise CannotListenAt(error, place.host, place.port) from error
        return cls(listeners, connections, budget)

    @property
    def addresses(self) -> Sequence[tuple[str, int]]:
        return [listener.address for listener in self._listeners]

    def sweep(self) -> None:
        """Called every few seconds: ends connections that are silent too long, or hold a budget that is spent."""
        self._connections.sweep()
        self._connections.relieve(self._budget)

    def stop(self) -> None:
        """Accept no more. Connections live on until `close`."""
        for listener in self._listeners:
            listener.stop()

    def pause(self) -> None:
        """Answer nobody until `resume`. Connections stay open; one made meanwhile waits like the others."""
        self._connections.pause()

    def resume(self) -> None:
        self._connections.resume()

    def hasten(self) -> "asyncio.Future[None]":
        """Done at once: a Kafka client whose connection ends asks another node, or the same again, without a word to its user."""
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answered.set_result(None)
        return answered

    def close(self) -> None:
        """Send what has been answered, then close."""
        self._connections.finish_all()

    def abort(self) -> None:
        """Close at once."""
        self._connections.close_all()
