"""How one connection says who it is: which requests count in which state, and what becomes of them.

    state        SaslHandshake                       SaslAuthenticate            any other request
    new          known mechanism: negotiated         ILLEGAL_SASL_STATE, close   ApiVersions once; else close
    unprotected  ILLEGAL_SASL_STATE, close           refused and told why        close
    negotiated   ILLEGAL_SASL_STATE, close           the exchange; then known    close
    known        again negotiated, or refused        ILLEGAL_SASL_STATE          served, while the session lasts
    over         ILLEGAL_SASL_STATE, close           ILLEGAL_SASL_STATE, close   close

Behaviour worth knowing
    Unprotected is a connection that others may listen to: no mechanism is offered there, because a password, or what is as good as one
    to whoever can guess, would pass in the open.
    A client that logs in again (KIP-368) keeps its name and its mechanism, or loses its connection.
    A failure is answered after a delay that counts from the request, so that it does not tell how long the comparison took. The connection
    ends a moment later: kafka-python forgets an answer that it finds together with the end, and would try again for ever.
"""

import asyncio
import math
from enum import Enum
from typing import TYPE_CHECKING, Final

from msgspec import structs

from ropewalk.base.errors import AuthenticationFailed, Throttled
from ropewalk.base.limits import LOGIN_AGAIN_MS_MIN, LOGIN_FAREWELL_MS, LOGIN_STEPS_MAX
from ropewalk.broker.bearers import Bearers
from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.kafka.connection import Connection
from ropewalk.kafka.exchanges import MECHANISMS, Exchange, Proof, offered
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ropewalk.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from ropewalk.kafka.authentication import Authentication

REFUSED: Final = "Authentication failed: the name, the password or the mechanism is not right"
"""What every client is told, whatever was wrong."""

UNPROTECTED: Final = "no mechanism is offered on a connection without encryption that comes from another machine; use a listener with TLS"
_BARE_TOKENS: Final = 0
"""The version of SaslHandshake after which the login follows without headers."""


class _State(Enum):
    NEW = "new"
    UNPROTECTED = "unprotected"
    NEGOTIATED = "negotiated"
    KNOWN = "known"
    OVER = "over"


class Login:
    __slots__ = (
        "_authentication",
        "_bearers",
        "_connection",
        "_exchange",
        "_has_asked_versions",
        "_has_been_refused",
        "_is_private",
        "_known_at_ms",
        "_mechanism",
        "_proof",
        "_proof_version",
        "_state",
        "_step_count",
        "_timer",
    )

    def __init__(
        self,
        authentication: "Authentication",
        connection: Connection,
        *,
        is_private: bool,
        bearers: Bearers | None,
    ) -> None:
        self._authentication = authentication
        self._bearers = bearers
        self._connection = connection
        self._is_private = is_private
        self._state = _State.NEW
        self._has_asked_versions = False
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._step_count = 0
        self._has_been_refused = False
        self._proof: Proof | None = None
        self._proof_version = -1
        self._known_at_ms = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._limit_time()

    # What the client asks

    def on_api_versions(self) -> None:
        """Once, and before anything else: whoever asks twice is no client of Kafka's."""
        if self._has_asked_versions or self._state is not _State.NEW:
            raise Disconnect("ApiVersions was asked again before the client said who it is")
        self._has_asked_versions = True

    def on_handshake(self, request: SaslHandshakeRequest, caller: Caller) -> SaslHandshakeResponse:
        authentication = self._authentication
        mechanisms = offered(
            authentication.enabled, is_private=self._is_private, takes_tokens=self._bearers is not None
        )
        if self._state is _State.KNOWN:
            if not self._may_log_in_again(request, caller):
                return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE, mechanisms)
        elif self._state is not _State.NEW:
            return SaslHandshakeResponse(self._out_of_order("SaslHandshake", caller), mechanisms)
        elif request.mechanism not in mechanisms:
            if not self._is_private and request.mechanism in authentication.enabled:
                self._state = _State.UNPROTECTED
                authentication.complain(caller, UNPROTECTED)
            else:
                known = request.mechanism if request.mechanism in MECHANISMS else "a mechanism unknown here"
                authentication.complain(
                    caller, f"it asked for {known}, and {', '.join(mechanisms) or 'nothing'} is offered"
                )
                self._end()
            return SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms)
        self._mechanism = request.mechanism
        self._exchange = authentication.begin(request.mechanism, self._bearers)
        self._has_been_refused = False
        self._state = _State.NEGOTIATED
        self._step_count = 0
        if caller.version == _BARE_TOKENS:
            self._connection.read_tokens()
        return SaslHandshakeResponse(ErrorCode.NONE, mechanisms)

    async def on_authenticate(
        self, request: SaslAuthenticateRequest, caller: Caller
    ) -> SaslAuthenticateResponse:
        exchange = self._exchange
        if self._state is _State.UNPROTECTED:
            self._end()
            return SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, UNPROTECTED)
        if self._state is _State.KNOWN:
            return SaslAuthenticateResponse(
                ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate comes after SaslHandshake"
            )
        if exchange is None:
            code = self._out_of_order("SaslAuthenticate", caller)
            return SaslAuthenticateResponse(code, "SaslAuthenticate comes after SaslHandshake")
        begun_s = asyncio.get_running_loop().time()
        with caller.hold():
            try:
                self._step_count += 1
                if self._step_count > LOGIN_STEPS_MAX:
                    raise AuthenticationFailed(f"{self._mechanism}: more than {LOGIN_STEPS_MAX} messages")
                said = await exchange.next(bytes(request.auth_bytes))
                if said.refused is not None:
                    self._has_been_refused = True  # some clients do not stay to hear it in so many words
                    self._authentication.complain(caller, said.refused, user=exchange.name)
                if said.proved is None:
                    return SaslAuthenticateResponse(ErrorCode.NONE, None, said.answer)
                lifetime_ms = self._on_proved(said.proved)
            except AuthenticationFailed as error:
                await self._refuse(caller, exchange.name, str(error), begun_s)
                return SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSED)
            except Throttled as error:
                self._authentication.complain(caller, str(error), user=exchange.name)
                self._state = _State.OVER
                raise Disconnect(
                    "too many others log in"
                ) from None  # its client tries again, which after a refusal it would not
            return SaslAuthenticateResponse(ErrorCode.NONE, None, said.answer, lifetime_ms)

    # While it lasts

    def ending(self) -> str | None:
        """Why nothing more is served, asked with every request; None while all is well."""
        authentication = self._authentication
        identity = self._connection.identity
        if identity.ends_at_ms is not None and authentication.clock.now_ms() >= identity.ends_at_ms:
            return f"the session of {identity.principal} is over: it did not log in again in time"
        proof = self._proof
        if proof is not None and self._proof_version != proof.version:
            if not proof.still_counts():
                return f"the session of {identity.principal} is over: its credential was changed or removed"
            self._proof_version = proof.version
        return None

    def on_lost(self) -> None:
        self._stop_timer()

    # Inside

    def _on_proved(self, proof: Proof) -> int:
        """Answers how long the session lasts, 0 for as long as the connection."""
        authentication = self._authentication
        if self._proof is not None and self._connection.identity.principal != proof.identity.principal:
            raise AuthenticationFailed(
                f"it was {self._connection.identity.principal}, and logged in as another"
            )
        now_ms = authentication.clock.now_ms()
        ends_at_ms = proof.identity.ends_at_ms
        if authentication.lifetime_ms:
            ends_at_ms = min(now_ms + authentication.lifetime_ms, ends_at_ms or math.inf)
        if ends_at_ms is not None and ends_at_ms <= now_ms:
            raise AuthenticationFailed(f"{self._mechanism}: what it proved has ended meanwhile")
        self._proof = proof
        self._known_at_ms = authentication.clock.monotonic_ms()
        self._state = _State.KNOWN
        self._exchange = None
        self._stop_timer()
        self._connection.identity = structs.replace(proof.identity, ends_at_ms=ends_at_ms)
        self._proof_version = proof.version
        authentication.on_known(self._connection)
        return 0 if ends_at_ms is None else math.ceil(ends_at_ms - now_ms)

    def _may_log_in_again(self, request: SaslHandshakeRequest, caller: Caller) -> bool:
        authentication = self._authentication
        if self._connection.identity.ends_at_ms is None or caller.version == _BARE_TOKENS:
            return False
        if authentication.clock.monotonic_ms() - self._known_at_ms < LOGIN_AGAIN_MS_MIN:
            return False
        if request.mechanism != self._mechanism:
            authentication.complain(
                caller, f"it logged in by {self._mechanism}, and again by another mechanism"
            )
            self._end()
            return False
        authentication.on_unknown(self._connection)
        self._limit_time()
        return True

    async def _refuse(self, caller: Caller, user: str | None, reason: str, begun_s: float) -> None:
        authentication = self._authentication
        if not self._has_been_refused:
            authentication.complain(caller, reason, user=user)
        loop = asyncio.get_running_loop()
        wait_s = begun_s + authentication.delay_ms / 1000 - loop.time()
        self._end(after_s=max(0.0, wait_s))
        if wait_s > 0:
            over = loop.create_future()
            loop.call_later(wait_s, over.set_result, None)
            await over

    def _out_of_order(self, what: str, caller: Caller) -> ErrorCode:
        self._authentication.complain(caller, f"{what} came out of order")
        self._end()
        return ErrorCode.ILLEGAL_SASL_STATE

    def _end(self, *, after_s: float = 0.0) -> None:
        """Nothing more is handled. The answer, which comes after so long, can be read for a moment before the connection ends."""
        self._state = _State.OVER
        self._exchange = None
        self._stop_timer()
        self._connection.hold()
        asyncio.get_running_loop().call_later(after_s + LOGIN_FAREWELL_MS / 1000, self._connection.finish)

    def _limit_time(self) -> None:
        self._timer = self._authentication.limit_time(self._connection)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
