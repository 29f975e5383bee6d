"""The HTTP door: where metrics, health and the console are served, and on what terms.

What a reader could get wrong
    At an address of the loopback figures are open to whoever is on the machine, since most that collects them stands there. A proxy there that
    others can reach makes them open to these, too: it has to ask by itself.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from ropewalk.base.hiding import hide
from ropewalk.base.limits import HTTP_BODY_BYTES_MAX, HTTP_CONNECTIONS_MAX
from ropewalk.base.ports import Network, TlsContexts
from ropewalk.console.door import ROOT, Console
from ropewalk.http.admission import Admission, Terms
from ropewalk.http.handlers.internals import Internals
from ropewalk.http.logins import Logins
from ropewalk.http.routes import Doorway, Route, routes
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.listener import HttpListener
from ropewalk.metadata.records import HTTP_LISTENER, HTTPS_LISTENER
from ropewalk.node import journal
from ropewalk.node.addresses import NONE, parse_address
from ropewalk.node.build import Parts
from ropewalk.node.certificates import contexts_of_door
from ropewalk.node.config import Config
from ropewalk.node.console_door import routes_of
from ropewalk.node.doors import HTTP, Door, reached
from ropewalk.node.exposure import METRICS_OPEN, is_loopback
from ropewalk.node.listening import listen_at
from ropewalk.runtime.stacks import stacks

SETTING: Final = "http.listen"
HOSTS: Final = "http.hosts"

BOUNDS: Final = HttpBounds(connections_max=HTTP_CONNECTIONS_MAX, body_bytes_max=HTTP_BODY_BYTES_MAX)


async def http_door(parts: Parts, console: Console | None) -> Door | None:
    """None where the configuration wants no door. Opening it raises `CannotListen`."""
    config, instruments = parts.config, parts.instruments
    if config[SETTING] == NONE:
        return None
    connections = HttpConnections(HTTP, parts.ports.clock, BOUNDS, parts.budget)
    instruments.add_source(connections)
    tls = await contexts_of_door(parts.certificates, config, "http")
    doorway = Doorway(_admission(parts), pages(parts, console))
    registered_as = HTTP_LISTENER if tls is None else HTTPS_LISTENER
    return Door(
        HTTP,
        partial(_listen, config, parts.ports.network, connections, doorway, tls),
        (partial(reached, registered_as),),
    )


def pages(parts: Parts, console: Console | None) -> Sequence[Route]:
    """All that this door serves, with what each page needs."""
    instruments = parts.instruments
    own = routes(
        instruments.sources,
        instruments.health,
        parts.cluster_health,
        instruments.vitals,
        Internals(journal=journal.kept, stacks=stacks, settings=partial(_settings, parts.config)),
        front=None if console is None else ROOT,
    )
    return own if console is None else (*own, *routes_of(console))


def _settings(config: Config) -> Iterator[str]:
    """As a file would have them, with where each comes from."""
    for name, configured in config.entries():
        if not config.is_default(name):
            yield hide(f"{name} = {configured.shown(name)}  # {configured.origin}")


def _admission(parts: Parts) -> Admission:
    config = parts.config
    host, _ = parse_address(config[SETTING], SETTING)
    hosts = {each.strip().lower() for each in config[HOSTS].split(",") if each.strip()}
    is_encrypted = config.is_encrypted(HTTP)
    return Admission(
        Terms(
            hosts=hosts | {host.lower()},
            is_encrypted=is_encrypted,
            figures_are_open=is_loopback(host) or config[METRICS_OPEN] == "true",
        ),
        parts.access,
        Logins(
            parts.bearers,
            parts.passwords,
            parts.ports.clock,
            is_encrypted=is_encrypted,
            delay_ms=lambda: parts.topics.broker_settings.connection_failed_authentication_delay_ms,
        ),
    )


async def _listen(
    config: Config,
    network: Network,
    connections: HttpConnections,
    doorway: Doorway,
    tls: TlsContexts | None,
) -> HttpListener:
    start = partial(
        HttpListener.start,
        network,
        connections=connections,
        answer=doorway.answer,
        tls=tls,
        proxies=config.proxies,
    )
    return await listen_at(config, SETTING, door="HTTP", option="--http", listen=start)
