"""The public keys of one authority, from a file or over HTTP: fetched before the node serves, looked at again, and never waited for by strangers at will.

Behaviour worth knowing
    A node whose authority cannot be asked when it starts does not start. Once it has keys it goes on with these, whatever becomes of the
    authority, complains, and tries again in growing steps.
    A token that names a key nobody knows has the keys asked for again, at most once in `JWKS_UNKNOWN_KEY_MS` whatever tokens name, and waits
    for the answer.
    Only the configured address is ever asked. Redirections are not followed, and nothing that a token or an answer names is fetched.

What a reader could get wrong
    One task asks (`run`), and whoever needs an answer waits for it: a client that goes away in the middle takes nothing with it.
"""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import structlog
from msgspec import Struct

from ropewalk.base.complaints import Complaints
from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import (
    JWKS_ANSWER_MS_MAX,
    JWKS_BYTES_MAX,
    JWKS_FILE_LOOK_MS,
    JWKS_UNKNOWN_KEY_MS,
)
from ropewalk.base.ports import Clock, Network, Pool
from ropewalk.http1.client import ClientConnection
from ropewalk.security.bearer import KeySet, Token, knows, parse_key_set

_log = structlog.get_logger()

URL_SETTING: Final = "sasl.oauthbearer.jwks.endpoint.url"
CA_SETTING: Final = "sasl.oauthbearer.ca.location"
_PORTS: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class JwksSource(Struct, frozen=True, kw_only=True):
    url: str
    ca_location: str
    """A file of authorities that vouch for the server; empty for the system's."""
    refresh_ms: int
    retry_ms: int
    retry_ms_max: int

    @property
    def path(self) -> str | None:
        """Of a file; None where it is asked for over HTTP."""
        url = urlsplit(self.url)
        return url.path if url.scheme == "file" else None


def check_url(text: str) -> None:
    """Raises `InvalidSetting` for an address that keys cannot be trusted from."""
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        raise InvalidSetting(f"{URL_SETTING} is {text}, which is no URL: {error}") from None
    if url.scheme == "file":
        if url.netloc not in ("", "localhost") or not url.path:
            raise InvalidSetting(
                f"{URL_SETTING} is {text}, must name a file of this machine, as file:///PATH"
            )
        return
    if url.scheme not in _PORTS or not url.hostname or port == 0:
        raise InvalidSetting(f"{URL_SETTING} is {text}, must be an https:// or a file:/// URL")
    if url.username is not None:
        raise InvalidSetting(f"{URL_SETTING} has a password in it, which no public key needs")
    if url.scheme == "http" and url.hostname not in _LOOPBACK:
        raise InvalidSetting(
            f"{URL_SETTING} is {text}: whoever is on the way could put in keys of his own; use https, or a server on the loopback"
        )


class Jwks:
    def __init__(self, source: JwksSource, network: Network, pool: Pool, clock: Clock) -> None:
        self.source: Final = source
        self.keys = KeySet({})
        """None before `open`: no token is believed."""
        self.version = 0
        """Another whenever the keys are others."""
        self._network = network
        self._pool = pool
        self._clock = clock
        self._data = b""
        self._failure_count = 0
        self._failure: str | None = None
        self._complaints = Complaints()
        self._wanted = asyncio.Event()
        self._round: asyncio.Future[None] | None = None
        self._sought_at_ms: float | None = None

    async def open(self) -> None:
        """Raises `InvalidSetting` where there are no keys to be had."""
        try:
            self._take(await self._read())
        except (OSError, ValueError) as error:
            raise InvalidSetting(
                f"{URL_SETTING} is {self.source.url}, and no keys can be had there: {_said(error)}"
            ) from None

    async def knowing(self, token: Token) -> KeySet:
        """The keys, looked at again where the one that the token names is not among them and it is time to ask."""
        if knows(self.keys, token):
            return self.keys
        now_ms = self._clock.monotonic_ms()
        if self._round is None:
            if self._sought_at_ms is not None and now_ms - self._sought_at_ms < JWKS_UNKNOWN_KEY_MS:
                return self.keys
            self._sought_at_ms = now_ms
            self._round = asyncio.get_running_loop().create_future()
            self._wanted.set()
        await asyncio.shield(self._round)  # which ends in time, since asking does
        return self.keys

    def trouble(self) -> str | None:
        """What somebody should see to, in a few words."""
        if self._failure is None:
            return None
        return f"the keys at {self.source.url} cannot be had, and those from before are used: {self._failure}"

    async def run(self) -> None:
        while True:
            with suppress(TimeoutError):  # nobody asked: it is time to look all the same
                async with asyncio.timeout(self._wait_ms() / 1000):
                    await self._wanted.wait()
            self._wanted.clear()
            await self._look()

    def _wait_ms(self) -> float:
        source = self.source
        if self._failure_count:
            return min(source.retry_ms_max, source.retry_ms * 2.0 ** min(self._failure_count - 1, 30))
        return source.refresh_ms if source.path is None else JWKS_FILE_LOOK_MS

    async def _look(self) -> None:
        if self._round is None:
            self._round = (
                asyncio.get_running_loop().create_future()
            )  # whoever comes meanwhile waits for this one
        awaited = self._round
        try:
            self._take(await self._read())
        except (OSError, ValueError) as error:
            self._failure, self._failure_count = _said(error), self._failure_count + 1
            if self._complaints.is_due(self._failure, self._clock.monotonic_ms()):
                _log.error("keys of tokens stay as they were", url=self.source.url, reason=self._failure)
        else:
            self._failure, self._failure_count = None, 0
        finally:
            self._round = None
            awaited.set_result(None)

    def _take(self, data: bytes) -> None:
        if data == self._data:
            return
        keys = parse_key_set(data)
        self._data = data
        for reason in keys.ignored:
            _log.warning("a key of tokens is not used", url=self.source.url, reason=reason)
        if keys.thumbprints != self.keys.thumbprints or set(keys.by_id) != set(self.keys.by_id):
            self.version += 1
            _log.info("keys of tokens were read", url=self.source.url, key_count=len(keys.thumbprints))
        self.keys = keys

    async def _read(self) -> bytes:
        path = self.source.path
        if path is not None:
            return await self._pool.run(_read_file, path)
        async with asyncio.timeout(JWKS_ANSWER_MS_MAX / 1000):  # TimeoutError is an OSError
            return await self._get()

    async def _get(self) -> bytes:
        url = urlsplit(self.source.url)
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        tls = None
        if url.scheme == "https":
            tls = await self._pool.run(_context, self.source.ca_location)
        connection = await ClientConnection.open(
            self._network,
            url.hostname or "",
            url.port or _PORTS[url.scheme],
            tls=None if tls is None else lambda: tls,
            answer_bytes_max=JWKS_BYTES_MAX,
        )
        try:
            reply = await connection.request(
                (
                    f"GET {target} HTTP/1.1\r\nHost: {url.netloc}\r\nUser-Agent: ropewalk\r\nAccept: application/json\r\n"
                    "Connection: close\r\n\r\n"
                ).encode()
            )
        finally:
            connection.close()
        if reply.status != 200:
            raise OSError(f"it answered with status {reply.status}")
        return reply.body


def _context(ca_location: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_location or None)


def _read_file(path: str) -> bytes:
    with Path(path).open("rb") as file:
        data = file.read(JWKS_BYTES_MAX + 1)
    if len(data) > JWKS_BYTES_MAX:
        raise ValueError(f"it is larger than {JWKS_BYTES_MAX} bytes")
    return data


def _said(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer in {JWKS_ANSWER_MS_MAX} ms"
    return str(error) or type(error).__name__
