"""The HTTP door: where metrics and health are served."""

from functools import partial
from typing import Final

from ropewalk.base.budget import ByteBudget
from ropewalk.base.limits import HTTP_BODY_BYTES_MAX, HTTP_CONNECTIONS_MAX
from ropewalk.base.ports import Network, Ports, TlsContexts
from ropewalk.broker.watching.cluster_health import ClusterHealth
from ropewalk.http.routes import routes
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.listener import HttpListener
from ropewalk.http1.routing import RouteTable
from ropewalk.metadata.records import HTTP_LISTENER, HTTPS_LISTENER
from ropewalk.node.addresses import NONE
from ropewalk.node.certificates import Certificates, contexts_of_door
from ropewalk.node.config import Config
from ropewalk.node.doors import HTTP, Door, reached
from ropewalk.node.instruments import Instruments
from ropewalk.node.listening import listen_at

SETTING: Final = "http.listen"

BOUNDS: Final = HttpBounds(connections_max=HTTP_CONNECTIONS_MAX, body_bytes_max=HTTP_BODY_BYTES_MAX)


async def http_door(
    config: Config,
    ports: Ports,
    budget: ByteBudget,
    instruments: Instruments,
    cluster: ClusterHealth,
    certificates: Certificates,
) -> Door | None:
    """None where the configuration wants no door. Opening it raises `CannotListen`."""
    if config[SETTING] == NONE:
        return None
    connections = HttpConnections(HTTP, ports.clock, BOUNDS, budget)
    table = routes(instruments.sources, instruments.health, cluster, instruments.vitals)
    instruments.add_source(connections)
    tls = await contexts_of_door(certificates, config, "http")
    registered_as = HTTP_LISTENER if tls is None else HTTPS_LISTENER
    return Door(
        HTTP,
        partial(_listen, config, ports.network, connections, table, tls),
        (partial(reached, registered_as),),
    )


async def _listen(
    config: Config,
    network: Network,
    connections: HttpConnections,
    table: RouteTable,
    tls: TlsContexts | None,
) -> HttpListener:
    start = partial(
        HttpListener.start,
        network,
        connections=connections,
        answer=table.answer,
        tls=tls,
        proxies=config.proxies,
    )
    return await listen_at(config, SETTING, door="HTTP", option="--http", listen=start)
