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
from ropewalk.node.config import Config, parse_address
from ropewalk.runtime.tasks import Supervisor

KAFKA: Final = "kafka"
PEER: Final = "peer"
HTTP: Final = "http"

SWEEP_S: Final = 5.0


class Entrance(Protocol):
    """A listener with its connections, once its address is had."""

    @property
    def address(self) -> tuple[str, int]: ...

    def sweep(self) -> None:
        """Called every few seconds: ends connections that are silent or slow for too long."""

    def stop(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class Door:
    """One address that others reach the node at, from its opening to its last answer."""

    def __init__(
        self,
        name: str,
        listen: Callable[[], Awaitable[Entrance]],
        endpoint: Callable[[tuple[str, int]], Endpoint],
    ) -> None:
        """`endpoint` says what others are told, given the address that is listened on."""
        self.name = name
        self._listen = listen
        self._endpoint = endpoint
        self._entrance: Entrance | None = None

    async def open(self) -> None:
        """Raises what `listen` does where the address cannot be had."""
        self._entrance = await self._listen()

    @property
    def address(self) -> tuple[str, int]:
        return self._opened.address

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """How others reach this door."""
        return (self._endpoint(self.address),)

    async def run(self) -> None:
        """Look after the connections for as long as the node lives."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self._opened.sweep()

    def stop(self) -> None:
        """Accept no more. Connections live on until `close` or `abort`."""
        self._opened.stop()

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

    def address(self, name: str) -> tuple[str, int] | None:
        """None where there is no such door."""
        return next((door.address for door in self._open if door.name == name), None)

    def stop(self) -> None:
        for door in self._open:
            door.stop()

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
    if config[setting]:
        host, port = parse_address(config[setting], setting)
        return Endpoint(listener, host, port or address[1])
    return reached(listener, address)


def reached(listener: str, address: tuple[str, int]) -> Endpoint:
    """A node that listens everywhere is reached at least from its own machine."""
    host, port = address
    return Endpoint(listener, "127.0.0.1" if host in ("0.0.0.0", "::") else host, port)
