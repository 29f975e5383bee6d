"""How clients of a listener with SASL begin: each says who it is, and until then it is served nothing else.

Behaviour worth knowing
    Until a name is known a connection has a table of its own: ApiVersions, SaslHandshake and SaslAuthenticate, in small frames. Any other
    request closes it, undecoded. There is no `if` in a handler that could be forgotten.
    Then it has a table in which everything asks first whether the session still lasts: it ends with its time, and when the credential that
    was proved is changed or removed. What waits for its answer then is answered; the next request closes the connection.
    Every failure has a line in the log, with the address, the name and the reason; equal ones are said once a minute, and all are counted.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Final, Protocol

import structlog
from msgspec import structs

from ropewalk.base import metrics
from ropewalk.base.complaints import Complaints
from ropewalk.base.limits import LOGIN_FRAME_BYTES_MAX, LOGIN_MS_MAX
from ropewalk.base.loopback import is_loopback
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock
from ropewalk.broker.bearers import Bearers
from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.kafka.connection import Connection
from ropewalk.kafka.exchanges import Exchange, Exchanges
from ropewalk.kafka.login import Login
from ropewalk.kafka.served import Handle, ServedApi
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.security.identity import Identity
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.api_versions import API as API_VERSIONS
from ropewalk.wire.messages.sasl_authenticate import API as SASL_AUTHENTICATE
from ropewalk.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ropewalk.wire.messages.sasl_handshake import API as SASL_HANDSHAKE
from ropewalk.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ropewalk.wire.types import Message

_log = structlog.get_logger()

_LOGIN_APIS: Final = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)


class LoginsHeard(Protocol):
    """Whoever keeps account of logins. It must not wait."""

    def on_login(self, identity: Identity, host: str, listener: str) -> None: ...

    def on_login_failed(self, user: str | None, reason: str, host: str, listener: str) -> None: ...


class Authentication:
    """Of all listeners of a node."""

    def __init__(
        self,
        *,
        settings: Callable[[], BrokerSettings],
        exchanges: Exchanges,
        clock: Clock,
    ) -> None:
        self.clock = clock
        self.failed_count = 0
        self.known_count = 0
        self._settings = settings
        self._exchanges = exchanges
        self._complaints = Complaints()
        self._logins: dict[object, Login] = {}
        self._heard: LoginsHeard | None = None
        self._first: dict[int, ServedApi] = {}
        self._served: dict[int, ServedApi] = {}
        self._frame_bytes_max = 0

    def tell(self, heard: "LoginsHeard") -> None:
        """From now on it hears of every login."""
        self._heard = heard

    def open(self, served: dict[int, ServedApi], *, frame_bytes_max: int) -> None:
        """`served` is what clients are served once it is known who they are."""
        self._frame_bytes_max = frame_bytes_max
        self._first = {api.key: served[api.key] for api in _LOGIN_APIS}
        self._first[API_VERSIONS.key] = structs.replace(
            served[API_VERSIONS.key], handle=partial(self._api_versions, served[API_VERSIONS.key].handle)
        )
        self._served = {
            key: api
            if key == SASL_HANDSHAKE.key
            else structs.replace(api, handle=partial(self._checked, api.handle))
            for key, api in served.items()
        }

    def admission(self, *, is_encrypted: bool, bearers: Bearers | None) -> Callable[[Connection], None]:
        """What a listener does with every connection that it accepts. `bearers` are whose tokens it takes; None for no tokens at all."""
        import scramp  # noqa: F401  takes a tenth of a second, which is not the first client's to wait

        return partial(self._admit, is_encrypted=is_encrypted, bearers=bearers)

    def _admit(self, connection: Connection, *, is_encrypted: bool, bearers: Bearers | None) -> None:
        login = Login(
            self, connection, is_private=is_encrypted or is_loopback(connection.host), bearers=bearers
        )
        self._logins[connection] = login
        connection.watch_end(partial(self._forget, connection))
        self.on_unknown(connection)

    def _forget(self, connection: Connection) -> None:
        self._logins.pop(connection).on_lost()

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.LOGINS, self.known_count)
        sheet.add(metrics.LOGINS_FAILED, self.failed_count)
        yield

    # What handlers call

    def on_handshake(self, request: SaslHandshakeRequest, caller: Caller) -> SaslHandshakeResponse:
        login = self._logins.get(caller.connection)
        if login is None:
            return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
        return login.on_handshake(request, caller)

    async def on_authenticate(
        self, request: SaslAuthenticateRequest, caller: Caller
    ) -> SaslAuthenticateResponse:
        login = self._logins.get(caller.connection)
        if login is None:
            return SaslAuthenticateResponse(
                ErrorCode.ILLEGAL_SASL_STATE, "nobody logs in on a listener without SASL"
            )
        return await login.on_authenticate(request, caller)

    # What logins call

    @property
    def enabled(self) -> tuple[str, ...]:
        return self._settings().sasl_enabled_mechanisms

    @property
    def lifetime_ms(self) -> int:
        """How long a session lasts; 0: as long as its connection."""
        return self._settings().connections_max_reauth_ms

    @property
    def delay_ms(self) -> int:
        return self._settings().connection_failed_authentication_delay_ms

    def begin(self, mechanism: str, bearers: Bearers | None) -> Exchange:
        return self._exchanges.begin(mechanism, bearers)

    def on_known(self, connection: Connection) -> None:
        self.known_count += 1
        if self._heard is not None:
            self._heard.on_login(connection.identity, connection.host, connection.listener)
        connection.serve(self._served, frame_bytes_max=self._frame_bytes_max)

    def on_unknown(self, connection: Connection) -> None:
        connection.serve(
            self._first, frame_bytes_max=LOGIN_FRAME_BYTES_MAX, until="the client has said who it is"
        )

    def limit_time(self, connection: Connection) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(LOGIN_MS_MAX / 1000, self._give_up, connection)

    def complain(self, caller: Caller, reason: str, *, user: str | None = None) -> None:
        self._complain(caller.host, caller.listener, reason, user)

    def _give_up(self, connection: Connection) -> None:
        if connection.is_open:
            self._complain(
                connection.host, connection.listener, f"it did not log in within {LOGIN_MS_MAX} ms", None
            )
            connection.close()

    def _complain(self, host: str, listener: str, reason: str, user: str | None) -> None:
        self.failed_count += 1
        if self._heard is not None:
            self._heard.on_login_failed(user, reason, host, listener)
        if self._complaints.is_due(f"{host} {reason}", self.clock.monotonic_ms()):
            said = {} if user is None else {"user": f"{user!r:.200}"}
            _log.warning(
                "a login failed",
                client=host,
                listener=listener,
                reason=reason,
                failed_count=self.failed_count,
                **said,
            )

    # The tables

    def _api_versions(
        self, handle: Handle, request: Message, caller: Caller
    ) -> Coroutine[Any, None, Message | None]:
        try:
            self._logins[caller.connection].on_api_versions()
        except Disconnect as over:
            return _disconnect(str(over))
        return handle(request, caller)

    def _checked(
        self, handle: Handle, request: Message, caller: Caller
    ) -> Coroutine[Any, None, Message | None]:
        reason = self._logins[caller.connection].ending()
        return handle(request, caller) if reason is None else _disconnect(reason)


async def _disconnect(reason: str) -> None:
    raise Disconnect(reason)
