"""The HTTP door: where it listens, and what becomes of it when that address is taken.

Behaviour worth knowing
    If nobody chose the address and another process has it, as with a second node on one machine, any free port is
    taken instead: nobody should have to choose an address for metrics in order to start a node.
"""

import errno
from functools import partial
from typing import Final

import structlog

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import HTTP_BODY_BYTES_MAX, HTTP_CONNECTIONS_MAX
from ropewalk.base.ports import Network, Ports
from ropewalk.broker.watching.cluster_health import ClusterHealth
from ropewalk.http.routes import Routes
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.listener import HttpListener
from ropewalk.metadata.records import HTTP_LISTENER
from ropewalk.node.config import Config, parse_address
from ropewalk.node.doors import HTTP, Door, reached
from ropewalk.node.instruments import Instruments

_log = structlog.get_logger()

SETTING: Final = "http.listen"
NONE: Final = "none"
"""The value that leaves the door out."""

BOUNDS: Final = HttpBounds(connections_max=HTTP_CONNECTIONS_MAX, body_bytes_max=HTTP_BODY_BYTES_MAX)


class CannotListen(RopewalkError):
    """The address that was chosen for the door cannot be had."""


def http_door(
    config: Config, ports: Ports, budget: ByteBudget, instruments: Instruments, cluster: ClusterHealth
) -> Door | None:
    """None where the configuration wants no door. Opening it raises `CannotListen`."""
    if config[SETTING] == NONE:
        return None
    connections = HttpConnections(HTTP, ports.clock, BOUNDS, budget)
    routes = Routes(instruments.sources, instruments.health, cluster, instruments.vitals)
    instruments.add_source(connections)
    return Door(
        HTTP, partial(_listen, config, ports.network, connections, routes), partial(reached, HTTP_LISTENER)
    )


async def _listen(
    config: Config, network: Network, connections: HttpConnections, routes: Routes
) -> HttpListener:
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
