"""Where the HTTP door listens, and what becomes of it when that address is taken.

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
from ropewalk.base.ports import Network
from ropewalk.http.routes import Routes
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.listener import HttpListener
from ropewalk.node.config import Config, parse_address

_log = structlog.get_logger()

SETTING: Final = "http.listen"
NONE: Final = "none"
"""The value that leaves the door out."""

_SWEEP_S: Final = 5.0


class CannotListen(RopewalkError):
    """The address that was chosen for the door cannot be had."""


async def listen_http(
    config: Config, network: Network, connections: HttpConnections, routes: Routes
) -> HttpListener | None:
    """None where the configuration wants no door; raises `CannotListen`."""
    if config[SETTING] == NONE:
        return None
    host, port = parse_address(config[SETTING], SETTING)

    async def listen(port: int) -> HttpListener:
        return await HttpListener.start(network, host, port, connections=connections, answer=routes.answer)

    try:
        return await listen(port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise CannotListen(f"cannot listen on {config[SETTING]}: {error.strerror or error}") from error
        if not config.is_default(SETTING):
            raise CannotListen(
                f"{config[SETTING]} is taken by another process; choose another address with --http HOST:PORT "
                f"(port 0 takes any free one, --http {NONE} leaves the HTTP door out)"
            ) from error
    listener = await listen(0)
    _log.warning(
        "the usual HTTP port is taken by another process; another one is used",
        usual=config[SETTING],
        used=f"{host}:{listener.address[1]}",
    )
    return listener


async def sweep(listener: HttpListener) -> None:
    """End slow and silent connections for as long as the door is open."""
    while True:
        await asyncio.sleep(_SWEEP_S)
        listener.sweep()
