"""The part of a fake broker that asks who comes: SASL's four mechanisms, sessions that end, and servers that are not what they should be.

Nothing but ApiVersions, SaslHandshake and SaslAuthenticate is answered before the login is over, and nothing after the session's end.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from scramp import ScramException, ScramMechanism

from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import sasl_authenticate, sasl_handshake

PASSWORD: Final = "rope-yarn"
USER: Final = "ada"
TOKEN: Final = "header.claims.signature"
REFUSAL: Final = "Authentication failed: Invalid username or password"


@dataclass
class FakeLogin:
    mechanisms: tuple[str, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
    lifetime_ms: int = 0
    passwords: dict[str, str] = field(default_factory=lambda: {USER: PASSWORD})
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    logins: list[str] = field(default_factory=list)
    """The mechanism of each that was finished."""
    now_ms: Callable[[], float] = lambda: 0.0
    iterations: int = 4096
    knows_password: bool = True
    """Otherwise it takes any proof, and has none itself."""
    handshake_code: ErrorCode = ErrorCode.NONE
    version_max: int = sasl_handshake.API.version_max
    is_silent: bool = False
    """It answers no SaslAuthenticate."""


class FakeSession:
    """Of one connection."""

    def __init__(self, login: FakeLogin) -> None:
        self._login = login
        self._mechanism: str | None = None
        self._scram: Any = None
        self._has_failed_softly = False
        self._ends_at_ms: float | None = None

    @property
    def may_ask(self) -> bool:
        return self._ends_at_ms is not None and self._login.now_ms() < self._ends_at_ms

    @property
    def is_in_login(self) -> bool:
        return self._mechanism is not None

    def shake(self, request: sasl_handshake.SaslHandshakeRequest) -> sasl_handshake.SaslHandshakeResponse:
        login = self._login
        code = login.handshake_code
        if code is ErrorCode.NONE and request.mechanism not in login.mechanisms:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        self._mechanism = request.mechanism if code is ErrorCode.NONE else None
        self._scram = None
        return sasl_handshake.SaslHandshakeResponse(code, login.mechanisms)

    def authenticate(
        self, request: sasl_authenticate.SaslAuthenticateRequest
    ) -> sasl_authenticate.SaslAuthenticateResponse:
        assert self._mechanism is not None, "a message of no mechanism"
        if self._mechanism == "PLAIN":
            _, user, password = request.auth_bytes.decode().split("\0")
            return self._end(b"") if self._login.passwords.get(user) == password else self._refuse()
        if self._mechanism == "OAUTHBEARER":
            return self._bearer(request.auth_bytes.decode())
        return self._prove(request.auth_bytes.decode())

    def _bearer(self, message: str) -> sasl_authenticate.SaslAuthenticateResponse:
        if self._has_failed_softly:
            assert message == "\x01"
            return self._refuse()
        assert message.startswith("n,,\x01auth=Bearer ")
        assert message.endswith("\x01\x01")
        if message.removeprefix("n,,\x01auth=Bearer ").rstrip("\x01") in self._login.tokens:
            return self._end(b"")
        self._has_failed_softly = True
        return self._go_on(json.dumps({"status": "invalid_token"}).encode())

    def _prove(self, message: str) -> sasl_authenticate.SaslAuthenticateResponse:
        mechanism = ScramMechanism(self._mechanism)
        try:
            if self._scram is None:
                self._scram = mechanism.make_server(self._credential)
                self._scram.set_client_first(message)
                return self._go_on(self._server_first().encode())
            if not self._login.knows_password:
                return self._end(b"v=" + b"A" * 43 + b"=")
            self._scram.set_client_final(message)
            return self._end(self._scram.get_server_final().encode())
        except ScramException:
            return self._refuse()

    def _server_first(self) -> str:
        text = str(self._scram.get_server_first())
        return text.replace("i=4096", f"i={self._login.iterations}")

    def _credential(self, user: str) -> Any:
        password = self._login.passwords.get(user, "somebody else's")
        return ScramMechanism(self._mechanism).make_auth_info(password, iteration_count=4096)

    def _go_on(self, message: bytes) -> sasl_authenticate.SaslAuthenticateResponse:
        return sasl_authenticate.SaslAuthenticateResponse(0, None, message)

    def _end(self, message: bytes) -> sasl_authenticate.SaslAuthenticateResponse:
        assert self._mechanism is not None
        login = self._login
        login.logins.append(self._mechanism)
        self._mechanism = None
        self._ends_at_ms = login.now_ms() + login.lifetime_ms if login.lifetime_ms else float("inf")
        return sasl_authenticate.SaslAuthenticateResponse(0, None, message, login.lifetime_ms)

    def _refuse(self) -> sasl_authenticate.SaslAuthenticateResponse:
        return sasl_authenticate.SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSAL, b"")
