"""The doors of a node: what a door is, and all that the node has, in the order in which they were opened.

What a reader could get wrong
    A door that is stopped takes no new connections and goes on serving those it has; `close` and `abort` end these.
    The HTTP door opens before the logs do and closes after them, so that a node that starts or stops can be asked how far it is.
    `serving` is all the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from ropewalk.metadata.records import Endpoint
from ropewalk.node.addresses import parse_address
from ropewalk.node.config import Config
from ropewalk.runtime.tasks import Supervisor

KAFKA: Final = "kafka"
PEER: Final = "peer"
HTTP: Final = "http"
SQS: Final = "sqs"

SWEEP_S: Final = 5.0


class Entrance(Protocol):
    """A listener with its connections, once its address is had."""

    @property
    def addresses(self) -> Sequence[tuple[str, int]]: ...

    def sweep(self) -> None:
        """Called every few seconds: ends connections that are silent or slow for too long."""

    def stop(self) -> None: ...

    def hasten(self) -> "asyncio.Future[None]": ...

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class Door:
    """One way into the node, at one address or several, from its opening to its last answer."""

    def __init__(
        self,
        name: str,
        listen: Callable[[], Awaitable[Entrance]],
        tell: Sequence[Callable[[tuple[str, int]], Endpoint]],
    ) -> None:
        """`tell` says of each address what others are told, given the one that is listened on."""
        self.name = name
        self._listen = listen
        self._tell = tell
        self._entrance: Entrance | None = None

    async def open(self) -> None:
        """Raises what `listen` does where the address cannot be had."""
        self._entrance = await self._listen()

    @property
    def addresses(self) -> Sequence[tuple[str, int]]:
        """What is listened on; the first is the one that people are told of."""
        return self._opened.addresses

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """How others reach this door."""
        return [tell(address) for tell, address in zip(self._tell, self.addresses, strict=True)]

    async def run(self) -> None:
        """Look after the connections for as long as the node lives."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self._opened.sweep()

    def stop(self) -> None:
        """Accept no more. Connections live on until `close` or `abort`."""
        self._opened.stop()

    def hasten(self) -> "asyncio.Future[None]":
        """Answer those who wait with what there is. Done when nobody is owed an answer."""
        return self._opened.hasten()

    def close(self) -> None:
        """Send what has been answered, then close every connection."""
        self._opened.close()

    def abort(self) -> None:
        """Close every connection at once."""
        self._opened.abort()

    def pause(self) -> None:
        """Answer nobody until `resume`, as a node that hangs. Connections stay open."""
        self._opened.pause()

    def resume(self) -> None:
        self._opened.resume()

    @property
    def _opened(self) -> Entrance:
        assert self._entrance is not None, "a door is used once it is open"
        return self._entrance


class Doors:
    """Those that are open."""

    def __init__(self, doors: Sequence[Door] = ()) -> None:
        self._open = list(doors)

    async def open(self, door: Door, supervisor: Supervisor) -> None:
        """Raises what the door does where its address cannot be had."""
        await door.open()
        self._open.append(door)
        supervisor.start(f"connections of the {door.name} door", door.run())

    @property
    def serving(self) -> "Doors":
        """Those through which clients and nodes use this node, rather than watch it."""
        return Doors([door for door in self._open if door.name != HTTP])

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        return [endpoint for door in self._open for endpoint in door.endpoints]

    def addresses(self, name: str) -> Sequence[tuple[str, int]]:
        """Empty where there is no such door."""
        return next((door.addresses for door in self._open if door.name == name), ())

    def address(self, name: str) -> tuple[str, int] | None:
        """The first of them. None where there is no such door."""
        return next(iter(self.addresses(name)), None)

    def stop(self) -> None:
        for door in self._open:
            door.stop()

    async def hasten(self, *, within_ms: float) -> None:
        """Returns when nobody is owed an answer, or after so long."""
        if self._open:
            await asyncio.wait([door.hasten() for door in self._open], timeout=within_ms / 1000)

    def close(self) -> None:
        for door in self._open:
            door.close()

    def abort(self) -> None:
        for door in self._open:
            door.abort()

    def pause(self) -> None:
        for door in self._open:
            door.pause()

    def resume(self) -> None:
        for door in self._open:
            door.resume()


def advertised(config: Config, setting: str, listener: str, address: tuple[str, int]) -> Endpoint:
    """What others are told: the address configured for them, or the one listened on."""
    return told(parse_address(config[setting], setting) if config[setting] else None, listener, address)


def told(chosen: tuple[str, int] | None, listener: str, address: tuple[str, int]) -> Endpoint:
    """`chosen` with the port that is listened on where it names none; else the address listened on."""
    if chosen is None:
        return reached(listener, address)
    return Endpoint(listener, chosen[0], chosen[1] or address[1])


def reached(listener: str, address: tuple[str, int]) -> Endpoint:
    """A node that listens everywhere is reached at least from its own machine."""
    host, port = address
    return Endpoint(listener, "127.0.0.1" if host in ("0.0.0.0", "::") else host, port)
