"""How one client is let in by the brokers of a cluster, all in the same way: TLS, a login, and another login before that one ends.

What a reader could get wrong
    A session that the broker has given an end is renewed on the same connection before that (KIP-368). What is on its way is answered
    first, and what is sent meanwhile follows: nobody notices.
    A broker that refuses is not asked again: `NotAdmitted` reaches the caller. One that went away in the middle is merely unreachable.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable
from typing import Final, cast

from ropewalk.base.errors import ProtocolError, RopewalkError, TimedOut
from ropewalk.base.limits import CLIENT_LOGIN_AGAIN_MS, CLIENT_LOGIN_KEPT_MAX, CLIENT_LOGIN_KEPT_MIN
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.client.connections.mechanisms import Bearer, Exchange, NotProved, Plain, Scram
from ropewalk.client.connections.security import (
    OAUTHBEARER,
    ClientSecurity,
    TokenFunction,
    is_loopback,
    require_password,
)
from ropewalk.client.connections.tls import TlsSource, why_tls_failed
from ropewalk.client.connections.tokens import ClientCredentials
from ropewalk.client.errors import (
    ApiNotOffered,
    AuthenticationFailed,
    ConnectionLost,
    NotAdmitted,
    NotAnswered,
    TlsFailed,
    Unreachable,
)
from ropewalk.runtime.tasks import Supervisor
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import sasl_authenticate, sasl_handshake

_LOG: Final = logging.getLogger("ropewalk.client")
_NONCE_BYTES: Final = 24
_WITH_MESSAGES: Final = 1
"""The version of SaslHandshake after which messages of the mechanism are requests of their own."""


class Admission:
    """Owned by one client, on one event loop."""

    def __init__(self, network: Network, clock: Clock, rng: Rng, security: ClientSecurity) -> None:
        require_password(security)
        self._network = network
        self._clock = clock
        self._rng = rng
        self._security: Final = security
        self._tls: Final = TlsSource(security) if security.has_tls else None
        self._credentials = _credentials(network, clock, security)
        self._sessions = Supervisor(_on_bug, are_errands=True)
        self._session_count = 0
        self._has_warned = False

    async def open(self, address: Address, *, client_id: str, deadline_ms: float) -> Connection:
        """A connection on which requests are answered. Raises `Unreachable` and `NotAdmitted`."""
        try:
            connection = await Connection.open(
                self._network,
                self._clock,
                address,
                client_id=client_id,
                deadline_ms=deadline_ms,
                tls=self._tls,
            )
        except ssl.SSLError as error:
            has_certificate = self._security.ssl_certificate_location is not None
            raise TlsFailed(address, why_tls_failed(error, has_certificate=has_certificate)) from None
        except NotAnswered as error:
            raise Unreachable(address, f"{error.reason}; {self._what_it_may_want()}") from None
        if not self._security.has_login:
            return connection
        try:
            lifetime_ms = await self._log_in(connection, deadline_ms)
        except (ConnectionLost, TimedOut, ProtocolError) as error:
            connection.close()
            raise Unreachable(address, f"the login did not come to an end: {error}") from None
        except BaseException:
            connection.close()
            raise
        if lifetime_ms > 0:
            self._session_count += 1
            self._sessions.start(
                f"session {self._session_count}",
                self._renew(connection, lifetime_ms, allowed_ms=deadline_ms - self._clock.monotonic_ms()),
            )
        return connection

    async def _log_in(self, connection: Connection, deadline_ms: float) -> int:
        """How long the session lasts, in milliseconds; 0 where it has no end."""
        return await self._exchange(connection, await self._begin(connection, deadline_ms), deadline_ms)

    async def _begin(self, connection: Connection, deadline_ms: float) -> Exchange:
        """All that must be fetched for a login, so that the login itself is quick."""
        security = self._security
        if security.sasl_mechanism == OAUTHBEARER:
            self._warn_of_plain(connection.address)
            if self._credentials is not None:
                return Bearer(await self._credentials.token(deadline_ms=deadline_ms))
            return Bearer(await _asked(cast(TokenFunction, security.sasl_oauthbearer_token)))
        assert security.sasl_mechanism is not None, "it was checked"
        assert security.sasl_username is not None, "it was checked"
        assert security.sasl_password is not None, "it was required"
        password = security.sasl_password.reveal()
        if security.sasl_mechanism == "PLAIN":
            self._warn_of_plain(connection.address)
            return Plain(security.sasl_username, password)
        nonce = self._rng.randbytes(_NONCE_BYTES).hex()
        return Scram(security.sasl_mechanism, security.sasl_username, password, nonce=nonce)

    async def _exchange(self, connection: Connection, exchange: Exchange, deadline_ms: float) -> int:
        mechanism = self._security.sasl_mechanism
        assert mechanism is not None, "it was checked"
        address = connection.address
        try:
            if connection.versions.choose(sasl_handshake.API) < _WITH_MESSAGES:
                raise AuthenticationFailed(address, "it is too old: it does not offer SaslHandshake v1")
            shaken = await connection.call_alone(
                sasl_handshake.API,
                sasl_handshake.SaslHandshakeRequest(mechanism),
                deadline_ms=deadline_ms,
            )
            if shaken.error_code != ErrorCode.NONE:
                raise AuthenticationFailed(address, _why_not_shaken(shaken, mechanism))
            lifetime_ms = 0
            message: bytes | None = exchange.begin()
            while message is not None:
                answer = await connection.call_alone(
                    sasl_authenticate.API,
                    sasl_authenticate.SaslAuthenticateRequest(message),
                    deadline_ms=deadline_ms,
                )
                if answer.error_code != ErrorCode.NONE:
                    raise AuthenticationFailed(address, self._refusal(answer))
                lifetime_ms = answer.session_lifetime_ms
                message = exchange.answer(answer.auth_bytes)
        except ApiNotOffered:
            text = "it offers no login: set security_protocol to SSL or PLAINTEXT, or use another port"
            raise AuthenticationFailed(address, text) from None
        except NotProved as error:
            raise AuthenticationFailed(address, f"the broker is not trusted: {error}") from None
        return lifetime_ms

    def _refusal(self, answer: sasl_authenticate.SaslAuthenticateResponse) -> str:
        mechanism, user = self._security.sasl_mechanism, self._security.sasl_username
        who = f"user {user!r} by {mechanism}" if user is not None else f"the token of {mechanism}"
        told = answer.error_message or _code_name(answer.error_code)
        return f"it does not take {who}: {told}"

    async def _renew(self, connection: Connection, lifetime_ms: float, *, allowed_ms: float) -> None:
        """As long as the connection is there and its sessions have an end. `allowed_ms` is the time for one login."""
        while lifetime_ms > 0:
            ends_at_ms = self._clock.monotonic_ms() + lifetime_ms
            rests_ms = lifetime_ms * self._rng.uniform(CLIENT_LOGIN_KEPT_MIN, CLIENT_LOGIN_KEPT_MAX)
            if await _has_ended(connection, rests_ms):
                return
            try:
                exchange = await self._ready(connection, ends_at_ms)
                async with connection.alone():
                    lifetime_ms = await self._exchange(
                        connection, exchange, self._clock.monotonic_ms() + max(allowed_ms, 1_000)
                    )
            except NotAdmitted as error:
                connection.fail(error)
                return
            except RopewalkError as error:
                connection.fail(
                    ConnectionLost(f"the session at {connection.address} was not renewed: {error}")
                )
                return

    async def _ready(self, connection: Connection, ends_at_ms: float) -> Exchange:
        """With a token whose endpoint may need more than one attempt, as long as the session lasts."""
        while True:
            try:
                return await self._begin(connection, ends_at_ms)
            except Unreachable:
                left_ms = ends_at_ms - self._clock.monotonic_ms()
                if left_ms <= CLIENT_LOGIN_AGAIN_MS or await _has_ended(connection, CLIENT_LOGIN_AGAIN_MS):
                    raise

    def _what_it_may_want(self) -> str:
        if not self._security.has_tls:
            return "where it wants TLS, set security_protocol to SASL_SSL"
        if self._security.ssl_certificate_location is None:
            return (
                "it may not speak TLS there, or want a certificate of this client (ssl_certificate_location)"
            )
        return "it may not speak TLS there, or not take this client's certificate"

    def _warn_of_plain(self, address: Address) -> None:
        if not self._has_warned and not self._security.has_tls and not is_loopback(address.host):
            self._has_warned = True
            _LOG.warning(
                "%s: with security_protocol=SASL_PLAINTEXT and sasl_mechanism=%s whoever listens on the way can read the secret",
                address,
                self._security.sasl_mechanism,
            )


async def _has_ended(connection: Connection, wait_ms: float) -> bool:
    """Whether the connection ends within this time."""
    try:
        async with asyncio.timeout(wait_ms / 1000):
            await connection.wait_end()
    except TimeoutError:
        return False
    return True


async def _asked(give: TokenFunction) -> str:
    given = give()
    return await given if isinstance(given, Awaitable) else given


def _credentials(network: Network, clock: Clock, security: ClientSecurity) -> ClientCredentials | None:
    url, client_id = security.sasl_oauthbearer_token_endpoint_url, security.sasl_oauthbearer_client_id
    secret = security.sasl_oauthbearer_client_secret
    if url is None or client_id is None or secret is None:
        return None
    return ClientCredentials(
        network,
        clock,
        url=url,
        client_id=client_id,
        client_secret=secret,
        scope=security.sasl_oauthbearer_scope,
        ca_location=security.https_ca_location,
    )


def _why_not_shaken(answer: sasl_handshake.SaslHandshakeResponse, mechanism: str) -> str:
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        taken = ", ".join(answer.mechanisms) or "no mechanism"
        return f"it does not take sasl_mechanism={mechanism}; it takes {taken}"
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        return "it wants no login there: set security_protocol to SSL or PLAINTEXT, or use another port"
    return f"it refuses SaslHandshake: {_code_name(answer.error_code)}"


def _code_name(number: int) -> str:
    try:
        return ErrorCode(number).name.lower().replace("_", " ")
    except ValueError:
        return f"error {number}"


def _on_bug(name: str, error: BaseException) -> None:
    asyncio.get_running_loop().call_exception_handler({"message": f"{name} has failed", "exception": error})
