"""The addresses that a node listens on for Kafka's clients, by the settings that Kafka has for that or by the short form.

    kafka.listen=HOST:PORT      one listener, called by its protocol (kafka.security.protocol); `none` for no listener
    listeners=NAME://HOST:PORT  several, each with a name; listener.security.protocol.map says which protocol a name stands for

What a reader could get wrong
    A listener is called PLAINTEXT in settings and `kafka` among the endpoints that a node registers, as it was before there were others:
    nodes of earlier releases tell their clients of that one. All others are called the same in both places.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import KAFKA_LISTENERS_MAX
from ropewalk.metadata.records import KAFKA_LISTENER, OTHER_LISTENERS
from ropewalk.node.addresses import NONE, parse_address
from ropewalk.security.protocols import SecurityProtocol

SHORT: Final = "kafka.listen"
_SHORT_ADVERTISE: Final = "kafka.advertise"
_SHORT_PROTOCOL: Final = "kafka.security.protocol"
_LONG: Final = "listeners"
_ADVERTISED: Final = "advertised.listeners"
_PROTOCOLS: Final = "listener.security.protocol.map"
LISTENER_PREFIX: Final = "listener.name."
"""Before the name of a listener, in lower case, and of a setting that it has a value of its own for."""

_NAME: Final = re.compile(r"[A-Z0-9][A-Z0-9_-]{0,63}")


class Settings(Protocol):
    """As much of a node's configuration as is read here."""

    def __getitem__(self, name: str) -> str: ...

    def get(self, name: str) -> str | None: ...

    def is_default(self, name: str) -> bool: ...


class ListenerPlan(Struct, frozen=True, kw_only=True):
    name: str
    """In settings."""

    protocol: SecurityProtocol
    host: str
    port: int
    """0 takes any free one."""

    advertised: tuple[str, int] | None
    """What clients are told, where that is not what is listened on; a port of 0 is the one listened on."""

    said_as: str
    """The setting and its value, for people."""

    @property
    def registered_as(self) -> str:
        is_plain = self.protocol is SecurityProtocol.PLAINTEXT
        return KAFKA_LISTENER if is_plain and self.name == SecurityProtocol.PLAINTEXT else self.name


def kafka_listeners(settings: Settings) -> tuple[ListenerPlan, ...]:
    """The first is the one that people are told of. Raises `InvalidSetting`."""
    listeners = tuple(_short(settings) if settings.is_default(_LONG) else _long(settings))
    _check_advertised(settings, listeners)
    return listeners


def _short(settings: Settings) -> Iterator[ListenerPlan]:
    if settings[SHORT] == NONE:
        return
    protocol = SecurityProtocol(settings[_SHORT_PROTOCOL])
    host, port = parse_address(settings[SHORT], SHORT)
    advertised = _advertised(settings).get(protocol.value)
    if settings[_SHORT_ADVERTISE]:
        if advertised is not None:
            raise InvalidSetting(f"{_SHORT_ADVERTISE} and {_ADVERTISED} are both set; set one of them")
        advertised = parse_address(settings[_SHORT_ADVERTISE], _SHORT_ADVERTISE)
    yield ListenerPlan(
        name=protocol.value,
        protocol=protocol,
        host=host,
        port=port,
        advertised=advertised,
        said_as=f"{SHORT} ({settings[SHORT]})",
    )


def _long(settings: Settings) -> Iterator[ListenerPlan]:
    for name in (SHORT, _SHORT_ADVERTISE, _SHORT_PROTOCOL):
        if not settings.is_default(name):
            raise InvalidSetting(
                f"{name} and {_LONG} are both set; {name} is of the short form for one listener, leave it out"
            )
    protocols, advertised = _protocols(settings), _advertised(settings)
    found: dict[str, ListenerPlan] = {}
    for name, (host, port) in _addresses(settings[_LONG], _LONG):
        if name in found:
            raise InvalidSetting(f"{_LONG} names {name} twice")
        taken = next(
            (each for each in found.values() if port and (each.host, each.port) == (host, port)), None
        )
        if taken is not None:
            raise InvalidSetting(f"{_LONG}: {taken.name} and {name} have the same address {host}:{port}")
        if name in OTHER_LISTENERS:
            raise InvalidSetting(f"{_LONG}: {name} is what another door of the node is called")
        if name not in protocols:
            raise InvalidSetting(
                f"{_LONG}: {name} is no security protocol, and {_PROTOCOLS} does not say which one it stands for"
            )
        found[name] = ListenerPlan(
            name=name,
            protocol=protocols[name],
            host=host,
            port=port,
            advertised=advertised.get(name),
            said_as=f"{_LONG} ({name}://{host}:{port})",
        )
    if len(found) > KAFKA_LISTENERS_MAX:
        raise InvalidSetting(
            f"{_LONG} names {len(found)} listeners, at most {KAFKA_LISTENERS_MAX} are served"
        )
    yield from found.values()


def _protocols(settings: Settings) -> Mapping[str, SecurityProtocol]:
    """By the name of a listener. A protocol's own name stands for it unless said otherwise."""
    named = {protocol.value: protocol for protocol in SecurityProtocol}
    if settings.is_default(_PROTOCOLS):
        return named
    for item in _items(settings[_PROTOCOLS]):
        name, colon, protocol = item.partition(":")
        if not colon or protocol.upper() not in SecurityProtocol.__members__:
            raise InvalidSetting(
                f"{_PROTOCOLS}: {item!r} is not NAME:PROTOCOL with one of {', '.join(SecurityProtocol)}"
            )
        named[_name(name, _PROTOCOLS)] = SecurityProtocol[protocol.upper()]
    return named


def _advertised(settings: Settings) -> Mapping[str, tuple[str, int]]:
    return dict(_addresses(settings.get(_ADVERTISED) or "", _ADVERTISED))


def _check_advertised(settings: Settings, listeners: tuple[ListenerPlan, ...]) -> None:
    """What nobody listens on is not told; what everybody listens on is nowhere to go to."""
    for name, (host, port) in _advertised(settings).items():
        if name not in {listener.name for listener in listeners}:
            raise InvalidSetting(f"{_ADVERTISED} names {name}, on which this node does not listen")
        if host in ("0.0.0.0", "::"):
            raise InvalidSetting(
                f"{_ADVERTISED}: {name}://{host}:{port} is no address that a client can reach"
            )


def _addresses(text: str, setting: str) -> Iterator[tuple[str, tuple[str, int]]]:
    for item in _items(text):
        name, colon, address = item.partition("://")
        if not colon:
            raise InvalidSetting(f"{setting}: {item!r} is not NAME://HOST:PORT")
        yield _name(name, setting), parse_address(address, setting)


def _name(text: str, setting: str) -> str:
    name = text.strip().upper()
    if not _NAME.fullmatch(name):
        raise InvalidSetting(f"{setting}: {text!r} is no name of a listener: letters, digits, - and _")
    return name


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())
