"""The node's HTTP door: where it listens, and what becomes of it when that address is taken.

Behaviour worth knowing
    The door opens before the logs do and closes after them, so that a node that starts or stops can be asked how far it is.
    If nobody chose the address and another process has it, as with a second node on one machine, any free port is
    taken instead: nobody should have to choose an address for metrics in order to start a node.
"""

import asyncio
import errno
from typing import Final

import structlog

from ropewalk.base.errors import RopewalkError
from ropewalk.base.metrics import Source
from ropewalk.base.ports import Ports
from ropewalk.broker.health import Health
from ropewalk.broker.vitals import Vitals
from ropewalk.http.connections import HttpConnections
from ropewalk.http.listener import HttpListener
from ropewalk.http.routes import Routes
from ropewalk.node.config import Config, parse_address

_log = structlog.get_logger()

SETTING: Final = "http.listen"
NONE: Final = "none"
"""The value that leaves the door out."""

_SWEEP_S: Final = 5.0


class CannotListen(RopewalkError):
    """The address that was chosen for the door cannot be had."""


class HttpDoor:
    def __init__(self, listener: HttpListener) -> None:
        """Use `open_http_door`."""
        self.listener = listener

    @property
    def address(self) -> tuple[str, int]:
        return self.listener.address

    async def sweep(self) -> None:
        """Ends slow and silent connections; runs for as long as the door is open."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.listener.sweep()


async def open_http_door(
    config: Config, ports: Ports, sources: list[Source], health: Health, vitals: Vitals
) -> HttpDoor | None:
    """None where the configuration wants none; raises `CannotListen`. The door is one more source of figures itself."""
    if config[SETTING] == NONE:
        return None
    connections = HttpConnections(ports.clock)
    sources.append(connections)
    routes = Routes(sources, health, vitals)
    host, port = parse_address(config[SETTING], SETTING)
    try:
        listener = await _listen(ports, host, port, connections, routes)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise CannotListen(f"cannot listen on {config[SETTING]}: {error.strerror or error}") from error
        if not config.is_default(SETTING):
            raise CannotListen(
                f"{config[SETTING]} is taken by another process; choose another address with --http HOST:PORT "
                f"(port 0 takes any free one, --http {NONE} leaves the HTTP door out)"
            ) from error
        listener = await _listen(ports, host, 0, connections, routes)
        _log.warning(
            "the usual HTTP port is taken by another process; another one is used",
            usual=config[SETTING],
            used=f"{host}:{listener.address[1]}",
        )
    return HttpDoor(listener)


async def _listen(
    ports: Ports, host: str, port: int, connections: HttpConnections, routes: Routes
) -> HttpListener:
    return await HttpListener.start(ports.network, host, port, connections=connections, routes=routes)
