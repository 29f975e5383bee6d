"""The console of a node: a client of the node's own Kafka listener, served on its HTTP door.

What a reader could get wrong
    Which listener it is follows from where the HTTP door is. On the loopback the console is open if a listener is, to whoever is on this machine
    and could use that listener as well. Elsewhere everybody logs in, by a listener that takes passwords and the cluster's tokens; where there
    is none, nobody is let in.
    A listener with TLS is reached by the address that clients are told, since its certificate names that.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.security import OAUTHBEARER, ClientSecurity
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.console.door import ROOT, Console
from ropewalk.console.gate import Place
from ropewalk.console.options import ConsoleOptions
from ropewalk.console.reach import CLIENT_ID, Entry, Reach
from ropewalk.http.admission import Caller
from ropewalk.http.needs import Open
from ropewalk.http.routes import Route
from ropewalk.http1.message import Answer, Request, StreamedAnswer
from ropewalk.node.addresses import NONE, parse_address
from ropewalk.node.build import Parts
from ropewalk.node.config import Config
from ropewalk.node.doors import HTTP, KAFKA, Doors
from ropewalk.node.exposure import is_loopback
from ropewalk.node.kafka_listeners import ListenerPlan
from ropewalk.security.protocols import SecurityProtocol

_MECHANISMS: Final = "sasl.enabled.mechanisms"
_NO_TOKENS: Final = (
    "nobody can log in here: the console needs a listener whose clients log in (SASL_SSL, or SASL_PLAINTEXT on the loopback) and that takes "
    f"OAUTHBEARER besides passwords, in {_MECHANISMS}"
)
_PLAIN_HTTP: Final = "a login would pass in the open: serve this door over TLS (http.security.protocol=SSL), or listen on the loopback"


class NotServingYet(RopewalkError):
    """The node has not opened the listener that the console asks."""


def console_of(parts: Parts) -> Console | None:
    """None where nobody wants one."""
    config = parts.config
    if config["http.listen"] == NONE or config["console.enabled"] != "true":
        return None
    host, _ = parse_address(config["http.listen"], "http.listen")
    hosts = frozenset(each.strip().lower() for each in config["http.hosts"].split(",") if each.strip())
    place = Place(host, is_loopback(host), config.is_encrypted("http"), hosts)
    options = ConsoleOptions(
        is_readonly=config["console.readonly"] == "true", shows_messages=config["console.messages"] == "on"
    )
    return Console(
        clock=parts.ports.clock,
        rng=parts.ports.rng,
        pool=parts.ports.pool,
        network=parts.ports.network,
        place=place,
        port=partial(_port, parts.doors),
        reach=reach_of(config, parts.doors, place),
        options=options,
    )


def routes_of(console: Console) -> Sequence[Route]:
    needs = Open(
        "the console looks at who asks by itself, and asks the cluster in the name of whoever that is"
    )

    async def lead(request: Request, _caller: Caller) -> Answer:
        return await console.lead(request)

    async def answer(request: Request, caller: Caller) -> Answer | StreamedAnswer:
        return await console.answer(request, caller.visitor)

    return (Route(ROOT[:-1], needs, lead), Route(ROOT, needs, answer))


def reach_of(config: Config, doors: Doors, place: Place) -> Reach:
    listeners = config.kafka_listeners
    if place.is_loopback:
        for index, each in enumerate(listeners):
            if each.protocol is SecurityProtocol.PLAINTEXT:
                return Reach(
                    Entry.OPEN, partial(_listened_on, doors, index), ClientSettings(client_id=CLIENT_ID)
                )
    elif not place.is_encrypted:
        return Reach(Entry.CLOSED, lambda: (), ClientSettings(), why=_PLAIN_HTTP)
    mechanisms = [each.strip() for each in config[_MECHANISMS].split(",")]
    passwords = [each for each in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512") if each in mechanisms]
    for index, each in enumerate(listeners):
        is_near = each.protocol.is_encrypted or is_loopback(each.host)
        if each.protocol.has_sasl and is_near and OAUTHBEARER in mechanisms and passwords:
            addresses = _advertised if each.protocol.is_encrypted else _listened_on
            settings = ClientSettings(client_id=CLIENT_ID, security=_security(config, each))
            return Reach(Entry.LOGIN, partial(addresses, doors, index, each), settings, passwords[:2])
    return Reach(Entry.CLOSED, lambda: (), ClientSettings(), why=_NO_TOKENS)


def _security(config: Config, listener: ListenerPlan) -> ClientSecurity:
    trusted = config.of_listener(listener.name, "ssl.truststore.location")
    return ClientSecurity(
        security_protocol=listener.protocol.value,
        ssl_ca_location=(trusted or None) if listener.protocol.is_encrypted else None,
    )


def _listened_on(doors: Doors, index: int, _listener: ListenerPlan | None = None) -> Sequence[Address]:
    addresses = doors.addresses(KAFKA)
    if not addresses:
        raise NotServingYet("the node is starting; it does not serve clients yet")
    host, port = addresses[index]
    return (Address("127.0.0.1" if host in ("0.0.0.0", "::") else host, port),)


def _advertised(doors: Doors, index: int, listener: ListenerPlan) -> Sequence[Address]:
    (address,) = _listened_on(doors, index)
    if listener.advertised is None:
        return (address,)
    host, port = listener.advertised
    return (Address(host, port or address.port),)


def _port(doors: Doors) -> int:
    address = doors.address(HTTP)
    assert address is not None, "the console is asked through the door"
    return address[1]
