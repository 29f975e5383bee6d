"""Tokens of OAuth 2.0 for a client's own credentials: asked of their endpoint, and kept for as long as they are good.

What a reader could get wrong
    Nothing that an answer names is fetched: an endpoint that sends elsewhere is refused.
    Connections that are made at the same time ask once.
"""

import asyncio
import ssl
from base64 import b64encode
from functools import partial
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from ropewalk.base.limits import CLIENT_TOKEN_BYTES_MAX, CLIENT_TOKEN_KEPT
from ropewalk.base.ports import Clock, Network, TlsContexts
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.secret import Secret
from ropewalk.client.connections.single_flight import SingleFlight
from ropewalk.client.connections.tls import context_trusting, why_tls_failed
from ropewalk.client.errors import AuthenticationFailed, TlsFailed, Unreachable
from ropewalk.http1.client import ClientConnection, Reply

_PORTS: Final = {"http": 80, "https": 443}
_FAULTS: Final = 500
_TOO_MANY: Final = 429


class _Granted(msgspec.Struct):
    access_token: str
    token_type: str = "Bearer"
    expires_in: float = 0.0


class _Refused(msgspec.Struct):
    error: str = ""
    error_description: str = ""


class ClientCredentials:
    """RFC 6749, section 4.4."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        *,
        url: str,
        client_id: str,
        client_secret: Secret,
        scope: str | None,
        ca_location: str | None,
    ) -> None:
        self._network = network
        self._clock = clock
        self._url = url
        self._client_id = client_id
        self._client_secret = client_secret
        self._scope = scope
        parts = urlsplit(url)
        self._address: Final = Address(parts.hostname or "", parts.port or _PORTS[parts.scheme])
        self._authority: Final = parts.netloc
        self._target: Final = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._tls: TlsContexts | None = None
        if parts.scheme == "https":
            self._tls = partial(context_trusting, "https_ca_location", ca_location)
        self._asking: SingleFlight[str, str] = SingleFlight()
        self._kept: tuple[str, float] | None = None

    async def token(self, *, deadline_ms: float) -> str:
        """Raises `AuthenticationFailed` where the endpoint refuses, and `Unreachable` where another attempt may do better."""
        if self._kept is not None and self._clock.monotonic_ms() < self._kept[1]:
            return self._kept[0]
        return await self._asking.run("token", partial(self._ask, deadline_ms))

    async def _ask(self, deadline_ms: float) -> str:
        asked_at_ms = self._clock.monotonic_ms()
        try:
            async with asyncio.timeout((deadline_ms - asked_at_ms) / 1000):
                reply = await self._post()
        except TimeoutError:
            raise Unreachable(self._url, "it gave no token in time") from None
        except ssl.SSLEOFError:
            raise Unreachable(self._url, "the connection was closed in the handshake of TLS") from None
        except ssl.SSLError as error:
            why = why_tls_failed(error, has_certificate=False).replace("ssl_ca_location", "https_ca_location")
            raise TlsFailed(self._url, why) from None
        except OSError as error:
            raise Unreachable(self._url, str(error) or type(error).__name__) from None
        granted = self._granted(reply)
        if granted.expires_in > 0:
            self._kept = (granted.access_token, asked_at_ms + granted.expires_in * 1000 * CLIENT_TOKEN_KEPT)
        return granted.access_token

    async def _post(self) -> Reply:
        connection = await ClientConnection.open(
            self._network,
            self._address.host,
            self._address.port,
            tls=self._tls,
            answer_bytes_max=CLIENT_TOKEN_BYTES_MAX,
        )
        try:
            return await connection.request(self._request())
        finally:
            connection.close()

    def _request(self) -> bytes:
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        body = urlencode(form)
        # Both are encoded as a form would be before they are joined (RFC 6749, 2.3.1).
        name, secret = (quote(text, safe="") for text in (self._client_id, self._client_secret.reveal()))
        lines = (
            f"POST {self._target} HTTP/1.1",
            f"host: {self._authority}",
            f"authorization: Basic {b64encode(f'{name}:{secret}'.encode()).decode()}",
            "accept: application/json",
            "content-type: application/x-www-form-urlencoded",
            f"content-length: {len(body)}",
            "connection: close",
        )
        return "\r\n".join((*lines, "", body)).encode()

    def _granted(self, reply: Reply) -> _Granted:
        if reply.status >= _FAULTS or reply.status == _TOO_MANY:
            raise Unreachable(self._url, f"it answered with status {reply.status}")
        if reply.status != 200:
            raise AuthenticationFailed(self._url, f"it gives no token: {_told(reply)}")
        try:
            granted = msgspec.json.decode(reply.body, type=_Granted)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise AuthenticationFailed(self._url, "it answered with what is no token") from None
        if granted.token_type.lower() != "bearer":
            raise AuthenticationFailed(
                self._url, f"it gave a token of type {granted.token_type[:32]}, not Bearer"
            )
        return granted


def _told(reply: Reply) -> str:
    try:
        refused = msgspec.json.decode(reply.body, type=_Refused)
    except (msgspec.DecodeError, UnicodeDecodeError):
        refused = _Refused()
    words = ": ".join(word for word in (refused.error[:100], refused.error_description[:300]) if word)
    return words or f"status {reply.status}"
