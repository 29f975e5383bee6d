"""Where the SQS API is served, and who asks: from what was said, from the cluster's own nodes, or from the environment as AWS's tools read it.

What a reader could get wrong
    An endpoint that was given counts more than a bootstrap address, and that more than the environment.
    In development mode a node takes any key, so that a client without keys has some made up.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.ports import ClientPorts, TlsContexts
from ropewalk.client.administration.membership import ClusterViewer
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address, parse_addresses
from ropewalk.client.connections.security import NO_SECURITY, ClientSecurity, only_security
from ropewalk.client.connections.settings import ClientSettings, SettingValue
from ropewalk.client.connections.tls import TlsSource
from ropewalk.client.errors import Misuse
from ropewalk.client.queues.errors import NoDoor
from ropewalk.security.sigv4_signing import Credentials

SQS_LISTENER: Final = "SQS"
SQS_HTTPS_LISTENER: Final = "SQS_HTTPS"
"""What the door is called among a node's endpoints, without TLS and with it."""
REGION_DEFAULT: Final = "us-east-1"
_ENDPOINT_VARIABLES: Final = ("AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL")
_CA_VARIABLE: Final = "AWS_CA_BUNDLE"
_REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_MADE_UP: Final = Credentials("ropewalk", "ropewalk")
_PORTS: Final = {"http": 80, "https": 443}


class Endpoint(Struct, frozen=True):
    host: str
    port: int
    has_tls: bool = False

    def __str__(self) -> str:
        return f"{'https' if self.has_tls else 'http'}://{Address(self.host, self.port)}"

    @property
    def authority(self) -> str:
        """For the header `host`: a port that goes without saying is not said, since others sign it so."""
        is_usual = self.port == _PORTS["https" if self.has_tls else "http"]
        address = str(Address(self.host, self.port))
        return address.rpartition(":")[0] if is_usual else address


class Finder(Protocol):
    async def find(self) -> Sequence[Endpoint]:
        """At least one, the best first. Asked again when none of them answers."""


class Given:
    """The endpoint that somebody named."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def find(self) -> Sequence[Endpoint]:
        return (self._endpoint,)


class AmongNodes:
    """The doors that the nodes of a cluster have registered."""

    def __init__(
        self, bootstrap: str, ports: ClientPorts, *, timeout_ms: int, security: ClientSecurity = NO_SECURITY
    ) -> None:
        self._addresses = _addresses(bootstrap)
        self._ports = ports
        self._settings = ClientSettings(request_timeout_ms=timeout_ms, security=security)

    async def find(self) -> Sequence[Endpoint]:
        """Those of nodes that are active, in an order of chance, so that clients share them. Raises `NoDoor`."""
        ports = self._ports
        async with Client(ports.network, ports.clock, ports.rng, self._addresses, self._settings) as client:
            membership = await ClusterViewer(client).describe()
        found = [
            Endpoint(address.host, address.port, has_tls=name == SQS_HTTPS_LISTENER)
            for node in membership.nodes
            if node.state == "active"
            for name, address in node.doors
            if name in (SQS_LISTENER, SQS_HTTPS_LISTENER)
        ]
        if not found:
            raise NoDoor(
                "no node of this cluster serves queues: sqs.listen is none, or nobody is a front end"
            )
        return sorted(found, key=lambda _: ports.rng.random())


def finder(
    endpoint: str | None,
    bootstrap: str | None,
    ports: ClientPorts,
    environment: Mapping[str, str],
    *,
    timeout_ms: int,
    security: ClientSecurity = NO_SECURITY,
) -> Finder:
    """Raises `Misuse` where nothing says whom to ask."""
    if endpoint is not None:
        return Given(parse_endpoint(endpoint))
    if bootstrap is not None:
        return AmongNodes(bootstrap, ports, timeout_ms=timeout_ms, security=security)
    for name in _ENDPOINT_VARIABLES:
        if environment.get(name):
            return Given(parse_endpoint(environment[name]))
    raise Misuse(
        "whom to ask for the queue is not known: give endpoint= or bootstrap=, or set AWS_ENDPOINT_URL_SQS"
    )


def take_security(
    named: Mapping[str, SettingValue],
) -> tuple[ClientSecurity, ClientSecurity]:
    """How brokers are spoken to, and how endpoints over https are. Raises `InvalidSetting`.

    Who says nothing but `ssl_…` speaks of https alone.
    """
    if "security_protocol" in named or "security" in named or not named:
        security = only_security(named, "a Queue")
        return security, security
    of_https = only_security({**named, "security_protocol": "SSL"}, "a Queue")
    return NO_SECURITY, of_https


def tls_for_https(security: ClientSecurity, environment: Mapping[str, str]) -> TlsContexts:
    """Contexts for endpoints over https. Where nobody names an authority, AWS_CA_BUNDLE does, as for AWS's tools."""
    if not security.has_tls:
        security = ClientSecurity(security_protocol="SSL")
    if security.ssl_ca_location is None and environment.get(_CA_VARIABLE):
        security = replace(security, ssl_ca_location=environment[_CA_VARIABLE])
    return TlsSource(security)


def credentials(
    access_key: str | None, secret_key: str | None, session_token: str | None, environment: Mapping[str, str]
) -> Credentials:
    """Those given, those of the environment, or made up ones. Never half of one and half of another."""
    if (access_key is None) != (secret_key is None):
        raise Misuse("access_key and secret_key are given together, or neither")
    if access_key is not None and secret_key is not None:
        return Credentials(access_key, secret_key, session_token or "")
    key, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if key and secret:
        return Credentials(key, secret, environment.get("AWS_SESSION_TOKEN", ""))
    return _MADE_UP


def region(given: str | None, environment: Mapping[str, str]) -> str:
    return given or next(
        (environment[name] for name in _REGION_VARIABLES if environment.get(name)), REGION_DEFAULT
    )


def parse_endpoint(text: str) -> Endpoint:
    """Raises `Misuse`.

    >>> str(parse_endpoint("http://localhost:9324/")), str(parse_endpoint("127.0.0.1:9324"))
    ('http://localhost:9324', 'http://127.0.0.1:9324')
    """
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError as error:
        raise Misuse(f"{text!r} is not an endpoint: {error}") from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise Misuse(f"{text!r} is not an endpoint: expected http://HOST:PORT")
    return Endpoint(parts.hostname, port or _PORTS[parts.scheme], parts.scheme == "https")


def _addresses(bootstrap: str) -> tuple[Address, ...]:
    try:
        return parse_addresses(bootstrap)
    except ValueError as error:
        raise Misuse(str(error)) from None
