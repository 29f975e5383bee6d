"""How a client proves to brokers who it is, and has them prove who they are: by librdkafka's names, with underscores.

What a reader could get wrong
    A broker's certificate is always checked. Without `ssl_ca_location` the authorities of the operating system count; with it no others.
    A secret may be given or lie in a file (`…_file`), which only its owner may read and which is read for every new connection.
    Nothing here opens a file: a certificate that is missing is found when the first connection is made.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.client.connections.secret import GivenSecret, Secret, SecretFile

V = TypeVar("V")

TokenFunction: TypeAlias = Callable[[], str | Awaitable[str]]
"""Gives the token to log in with; asked for every login, so that it keeps a token as long as that is good."""

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
_LOOPBACK: Final = ("localhost", "::1")


class ClientSecurity(Struct, frozen=True, kw_only=True):
    security_protocol: str = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL: whether there is TLS, and whether there is a login."""
    ssl_ca_location: str | None = None
    """A file of PEM, or a directory as OpenSSL hashes it: the authorities that may vouch for brokers."""
    ssl_certificate_location: str | None = None
    """A file of PEM: the client's own certificate, and those between it and the authority."""
    ssl_key_location: str | None = None
    """A file of PEM with the key; not needed where the certificate's file has it, too."""
    ssl_key_password: Secret | None = None
    ssl_endpoint_identification_algorithm: str = "https"
    """https: the certificate must name the host that was connected to. none: any name will do."""
    sasl_mechanism: str | None = None
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."""
    sasl_username: str | None = None
    sasl_password: Secret | None = None
    sasl_oauthbearer_token: TokenFunction | None = None
    sasl_oauthbearer_token_endpoint_url: str | None = None
    sasl_oauthbearer_client_id: str | None = None
    sasl_oauthbearer_client_secret: Secret | None = None
    sasl_oauthbearer_scope: str | None = None
    https_ca_location: str | None = None
    """As `ssl_ca_location`, for the token's endpoint."""

    @property
    def has_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def has_login(self) -> bool:
        return self.security_protocol.startswith("SASL")

    @property
    def is_plain(self) -> bool:
        return not (self.has_tls or self.has_login)

    def needs_password(self) -> bool:
        """Whether a user is to prove itself by a password that nobody has given."""
        return self.has_login and self.sasl_mechanism != OAUTHBEARER and self.sasl_password is None


NO_SECURITY: Final = ClientSecurity()

SECRETS: Final = ("ssl_key_password", "sasl_password", "sasl_oauthbearer_client_secret")
_FILES: Final = tuple(f"{name}_file" for name in SECRETS)
SECURITY_NAMES: Final = (*ClientSecurity.__struct_fields__, *_FILES)
VARIABLES: Final = {
    name: f"ROPEWALK_{name.upper()}" for name in SECURITY_NAMES if name != "sasl_oauthbearer_token"
}
"""In the environment."""
SECURITY_PROPERTIES: Final = tuple(
    name.replace("_", ".") for name in SECURITY_NAMES if name != "sasl_oauthbearer_token"
)
"""By Kafka's names: all but the function."""
_ALIASES: Final = {"sasl_mechanisms": "sasl_mechanism"}
_METHOD: Final = "sasl_oauthbearer_method"
_ALSO_TAKEN: Final = (*_ALIASES, _METHOD)
"""Names of librdkafka's that say what is said here in another way."""


def has_security(environment: Mapping[str, str]) -> bool:
    """Whether it says anything of a client's security."""
    return any(name in environment for name in VARIABLES.values())


def as_variables(security: ClientSecurity) -> dict[str, str]:
    """For the environment of another process, secrets and all."""
    said: dict[str, str] = {"security_protocol": security.security_protocol}
    for name in _given(security):
        value = getattr(security, name)
        if isinstance(value, SecretFile):
            said[f"{name}_file"] = value.path
        elif isinstance(value, GivenSecret):
            said[name] = value.reveal()
        elif isinstance(value, str):
            said[name] = value
    return {VARIABLES[name]: value for name, value in said.items()}


def of_security(properties: Mapping[str, V]) -> tuple[dict[str, V], dict[str, V]]:
    """Those of Kafka's names that are about security, as keywords, and the rest."""
    own = {
        name: name.replace(".", "_")
        for name in properties
        if "_" not in name and _is_known(name.replace(".", "_"))
    }
    rest = {name: value for name, value in properties.items() if name not in own}
    return {keyword: properties[name] for name, keyword in own.items()}, rest


def _is_known(keyword: str) -> bool:
    return keyword in SECURITY_NAMES or keyword in _ALSO_TAKEN


def take_security(named: Mapping[str, V]) -> tuple[ClientSecurity, dict[str, V]]:
    """What is said of security, and the rest. Raises `InvalidSetting`, which says what to do."""
    own = {name: value for name, value in named.items() if _is_known(name)}
    rest = {name: value for name, value in named.items() if name not in own}
    whole = rest.pop("security", None)
    if isinstance(whole, ClientSecurity):
        if own:
            raise InvalidSetting(f"security is given as a whole: leave {next(iter(own))} out")
        return whole, rest
    return (security_from(own) if own else NO_SECURITY), rest


def only_security(named: Mapping[str, object], who: str) -> ClientSecurity:
    """Where nothing else may be said. Raises `InvalidSetting`."""
    security, others = take_security(named)
    if others:
        raise InvalidSetting(
            f"{who} does not know {', '.join(sorted(others))}; of security it knows {', '.join(SECURITY_NAMES)}"
        )
    return security


def security_from(named: Mapping[str, object]) -> ClientSecurity:
    """Of names in Python's spelling that are all about security, None being the same as nothing. Raises `InvalidSetting`."""
    given: dict[str, object] = {}
    for name, value in named.items():
        chosen = _ALIASES.get(name, name)
        if chosen == "ssl_endpoint_identification_algorithm" and value == "":
            value = "none"  # as Java says it
        if value is None or value == "":
            continue
        if chosen == _METHOD:
            if value != "oidc":  # librdkafka's other one is what a function does here
                raise InvalidSetting(f"{_METHOD} is {value!r}; say oidc, or leave it out")
            continue
        if chosen in given:
            raise InvalidSetting(f"{chosen} is said twice; give one of {name} and {chosen}")
        given[chosen] = value
    for name in SECRETS:
        path = given.pop(f"{name}_file", None)
        if path is not None and name in given:
            raise InvalidSetting(f"give one of {name} and {name}_file, not both")
        if path is not None:
            given[name] = SecretFile(f"{name}_file", _text(f"{name}_file", path))
        elif name in given and not isinstance(given[name], GivenSecret | SecretFile):
            given[name] = GivenSecret(_text(name, given[name]))
    token = given.pop("sasl_oauthbearer_token", None)
    if token is not None and not callable(token):
        raise InvalidSetting("sasl_oauthbearer_token must be a function that returns a token")
    texts = {name: value if name in SECRETS else _text(name, value).strip() for name, value in given.items()}
    for name in ("security_protocol", "sasl_mechanism"):
        if name in texts:
            texts[name] = str(texts[name]).upper()
    security = ClientSecurity(
        **cast("dict[str, Any]", texts),  # each was checked to be text or a secret, as its field has it
        sasl_oauthbearer_token=cast("TokenFunction | None", token),
    )
    _check(security)
    return security


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidSetting(f"{name} must be text, not {type(value).__name__}")
    return value


def _check(security: ClientSecurity) -> None:
    protocol = security.security_protocol
    if protocol not in PROTOCOLS:
        raise InvalidSetting(f"security_protocol is {protocol!r}, must be one of {', '.join(PROTOCOLS)}")
    _check_tls(security)
    if not security.has_login:
        _refuse_rest(security, "sasl_", "security_protocol=SASL_SSL")
        _refuse_rest(security, "https_", "security_protocol=SASL_SSL")
        return
    mechanism = security.sasl_mechanism
    if mechanism is None:
        raise InvalidSetting(f"security_protocol is {protocol}: say sasl_mechanism, {_any_of(MECHANISMS)}")
    if mechanism not in MECHANISMS:
        raise InvalidSetting(f"sasl_mechanism is {mechanism!r}, must be {_any_of(MECHANISMS)}")
    if mechanism == OAUTHBEARER:
        _check_tokens(security)
        return
    tokens = [
        name
        for name in _given(security)
        if name.startswith("sasl_oauthbearer_") or name == "https_ca_location"
    ]
    if tokens:
        raise InvalidSetting(f"{tokens[0]} is for sasl_mechanism=OAUTHBEARER, not for {mechanism}")
    if security.sasl_username is None:
        raise InvalidSetting(f"sasl_mechanism is {mechanism}: say sasl_username and sasl_password")
    if any(ord(character) < 32 or ord(character) == 127 for character in security.sasl_username):
        raise InvalidSetting("sasl_username has a control character in it")


def require_password(security: ClientSecurity) -> None:
    """Where nobody is left who might ask for it."""
    if security.needs_password():
        raise InvalidSetting(
            f"sasl_mechanism is {security.sasl_mechanism}: give sasl_password, or sasl_password_file"
        )


def _check_tls(security: ClientSecurity) -> None:
    if not security.has_tls:
        wanted = "SASL_SSL" if security.has_login else "SSL"
        _refuse_rest(security, "ssl_", f"security_protocol={wanted}")
        return
    algorithm = security.ssl_endpoint_identification_algorithm
    if algorithm not in ("https", "none"):
        raise InvalidSetting(
            f"ssl_endpoint_identification_algorithm is {algorithm!r}, must be https, or none for certificates that name another host"
        )
    if security.ssl_key_location is not None and security.ssl_certificate_location is None:
        raise InvalidSetting(
            "ssl_key_location is the key of a certificate: say ssl_certificate_location, too"
        )
    if security.ssl_key_password is not None and security.ssl_certificate_location is None:
        raise InvalidSetting(
            "ssl_key_password opens the key of a certificate: say ssl_certificate_location, too"
        )


def _check_tokens(security: ClientSecurity) -> None:
    for name in ("sasl_username", "sasl_password"):
        if getattr(security, name) is not None:
            raise InvalidSetting(f"{name} is not for sasl_mechanism=OAUTHBEARER: a token says who it is")
    url = security.sasl_oauthbearer_token_endpoint_url
    by_credentials = [
        name
        for name in _given(security)
        if name.startswith("sasl_oauthbearer_") and name != "sasl_oauthbearer_token"
    ]
    if security.sasl_oauthbearer_token is not None:
        if by_credentials:
            raise InvalidSetting(f"give sasl_oauthbearer_token or {by_credentials[0]}, not both")
        return
    if (
        url is None
        or security.sasl_oauthbearer_client_id is None
        or security.sasl_oauthbearer_client_secret is None
    ):
        raise InvalidSetting(
            "sasl_mechanism is OAUTHBEARER: give sasl_oauthbearer_token, a function that returns a token, or all of "
            "sasl_oauthbearer_token_endpoint_url, sasl_oauthbearer_client_id and sasl_oauthbearer_client_secret"
        )
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        host, has_port = "", False
    if not host or not has_port or parts.scheme not in ("http", "https") or parts.username or parts.fragment:
        raise InvalidSetting(
            f"sasl_oauthbearer_token_endpoint_url is {url!r}, must be https://HOST[:PORT]/PATH"
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise InvalidSetting(
            f"sasl_oauthbearer_token_endpoint_url is {url!r}: without TLS the client's secret would be read on its way; say https"
        )


def is_loopback(host: str) -> bool:
    return host in _LOOPBACK or host.startswith("127.")


def _refuse_rest(security: ClientSecurity, prefix: str, remedy: str) -> None:
    said = [name for name in _given(security) if name.startswith(prefix)]
    if said:
        raise InvalidSetting(
            f"{said[0]} is set, but security_protocol is {security.security_protocol}; say {remedy}, or leave it out"
        )


def _given(security: ClientSecurity) -> list[str]:
    return [
        name
        for name in ClientSecurity.__struct_fields__
        if getattr(security, name) != getattr(NO_SECURITY, name)
    ]


def _any_of(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
