"""Requests to the SQS API: signed, sent to an endpoint that answers, and tried again where that does no harm.

What a reader could get wrong
    A request whose answer was lost may have been carried out. It is repeated only by those who say that this is as good as once
    (`repeatable`); one that certainly was not carried out is always tried again, until the deadline.
    Each connection carries one request at a time, since a long poll holds it for as long as it waits.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from ropewalk.base.errors import RopewalkError, TimedOut
from ropewalk.base.limits import QUEUE_CLIENT_ANSWER_BYTES_MAX, QUEUE_CLIENT_CONNECTIONS_MAX
from ropewalk.base.ports import ClientPorts, TlsContexts
from ropewalk.client.connections.backoff import Backoff
from ropewalk.client.connections.tls import why_tls_failed
from ropewalk.client.errors import LASTING, ConnectionLost, TlsFailed, Unreachable
from ropewalk.client.queues.endpoints import Endpoint, Finder
from ropewalk.client.queues.errors import QueueBusy, QueueRefused, refusal
from ropewalk.http1.client import ClientConnection, Reply
from ropewalk.security.sigv4_signing import Credentials, Signer, canonical_query

SQS: Final = "AmazonSQS"
OWN: Final = "Ropewalk"
"""The target of what the SQS API has no action for."""
_JSON: Final = "application/x-amz-json-1.0"
_CONNECT_MS: Final = 10_000
_RETRY_MS: Final = 100
_RETRY_MS_MAX: Final = 2_000
_FAULTS: Final = 500
_NOTHING: Final[Mapping[str, object]] = {}


class Caller:
    """Owned by one event loop. Any number of tasks may call at the same time; beyond so many connections they wait for each other."""

    def __init__(
        self,
        finder: Finder,
        credentials: Credentials,
        *,
        region: str,
        ports: ClientPorts,
        timeout_ms: int,
        patience_ms: int | None = None,
        tls: TlsContexts,
        user_agent: str = "ropewalk",
    ) -> None:
        self._finder = finder
        self._signer = Signer(credentials, region=region, service="sqs")
        self._network = ports.network
        self._rng = ports.rng
        self.clock: Final = ports.clock
        self.timeout_ms: Final = timeout_ms
        """For one call with all its attempts, beside what the server is asked to wait."""
        self._patience_ms = timeout_ms if patience_ms is None else patience_ms
        """For how long a call tries to reach anybody."""
        self._tls = tls
        self._user_agent = user_agent
        self._endpoints: deque[Endpoint] = deque()
        self._failed_count = 0
        self._idle: dict[Endpoint, list[ClientConnection]] = {}
        self._open: set[ClientConnection] = set()
        self._room = asyncio.Semaphore(QUEUE_CLIENT_CONNECTIONS_MAX)

    async def call(
        self,
        action: str,
        fields: Mapping[str, object] = _NOTHING,
        *,
        target: str = SQS,
        repeatable: bool = True,
        wait_ms: int = 0,
    ) -> dict[str, Any]:
        """What the action answers. Raises `QueueRefused` and its kin, `Unreachable`, `ConnectionLost`, `TimedOut`."""
        body = msgspec.json.encode({name: value for name, value in fields.items() if value is not None})
        headers = {"content-type": _JSON, "x-amz-target": f"{target}.{action}"}
        reply = await self._attempt("POST", headers, body, {}, action, repeatable, wait_ms, path="/")
        return _decoded(reply.body, action)

    async def get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        """A page of the door that is no action."""
        headers = {"accept": "application/json"}
        reply = await self._attempt("GET", headers, b"", query, path, repeatable=True, wait_ms=0, path=path)
        return _decoded(reply.body, path)

    def close(self) -> None:
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._idle.clear()

    async def _attempt(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
        action: str,
        repeatable: bool,
        wait_ms: int,
        *,
        path: str,
    ) -> Reply:
        allowed_ms = self.timeout_ms + wait_ms
        began_ms = self.clock.monotonic_ms()
        deadline_ms = began_ms + allowed_ms
        backoff = Backoff(
            self.clock, self._rng, delay_ms=_RETRY_MS, delay_ms_max=_RETRY_MS_MAX, deadline_ms=deadline_ms
        )
        while True:
            remaining_ms = deadline_ms - self.clock.monotonic_ms()
            try:
                async with asyncio.timeout(max(0.0, remaining_ms / 1000)):
                    reply = await self._once(method, headers, body, query, path)
            except TimeoutError:
                raise TimedOut(f"{action}: no answer within {allowed_ms} ms; it may have been done") from None
            except LASTING:
                raise
            except RopewalkError as error:
                if isinstance(error, Unreachable):
                    is_over = self.clock.monotonic_ms() - began_ms >= self._patience_ms
                else:
                    is_over = not repeatable
                if is_over:
                    raise
                failure: RopewalkError = error
            else:
                if reply.status < 300:
                    return reply
                failure = _refusal_of(reply, action)
                if not _may_be_repeated(failure, repeatable):
                    raise failure
            await backoff.wait(failure)

    async def _once(
        self, method: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, str], path: str
    ) -> Reply:
        endpoint = await self._endpoint()
        async with self._connection(endpoint) as connection:
            address = f"{path}?{canonical_query(query)}" if query else path
            signed = self._signer.signed(
                method,
                path,
                {"host": endpoint.authority, **headers},
                body,
                now_ms=self.clock.now_ms(),
                query=query,
            )
            lines = [f"{method} {address} HTTP/1.1"]
            lines += [f"{name}: {value}" for name, value in signed.items()]
            lines += [f"user-agent: {self._user_agent}", f"content-length: {len(body)}", "", ""]
            try:
                reply = await connection.request("\r\n".join(lines).encode() + body)
            except OSError as error:
                self._turn_from(endpoint)
                raise ConnectionLost(f"{endpoint}: {error}") from None
        self._failed_count = 0
        return reply

    async def _endpoint(self) -> Endpoint:
        if not self._endpoints or self._failed_count >= len(self._endpoints):
            self._endpoints = deque(await self._finder.find())
            self._failed_count = 0
        return self._endpoints[0]

    def _turn_from(self, endpoint: Endpoint) -> None:
        """The next attempt goes to the next one, where there is one."""
        if self._endpoints and self._endpoints[0] == endpoint:
            self._endpoints.rotate(-1)
            self._failed_count += 1

    @asynccontextmanager
    async def _connection(self, endpoint: Endpoint) -> AsyncIterator[ClientConnection]:
        async with self._room:
            connection = self._take_idle(endpoint) or await self._connect(endpoint)
            self._open.add(connection)
            try:
                yield connection
            except BaseException:
                connection.close()  # an answer that comes late would be taken for that of the next request
                self._open.discard(connection)
                raise
            if connection.is_open:
                self._idle.setdefault(endpoint, []).append(connection)
            else:
                self._open.discard(connection)

    def _take_idle(self, endpoint: Endpoint) -> ClientConnection | None:
        idle = self._idle.get(endpoint, [])
        while idle:
            connection = idle.pop()
            if connection.is_open:
                return connection
            self._open.discard(connection)
        return None

    async def _connect(self, endpoint: Endpoint) -> ClientConnection:
        try:
            async with asyncio.timeout(_CONNECT_MS / 1000):
                return await ClientConnection.open(
                    self._network,
                    endpoint.host,
                    endpoint.port,
                    tls=self._tls if endpoint.has_tls else None,
                    answer_bytes_max=QUEUE_CLIENT_ANSWER_BYTES_MAX,
                )
        except ssl.SSLError as error:
            if not isinstance(error, ssl.SSLEOFError):
                raise TlsFailed(endpoint, why_tls_failed(error, has_certificate=False)) from None
            self._turn_from(endpoint)
            raise Unreachable(endpoint, "it hung up in the handshake of TLS") from None
        except (OSError, TimeoutError) as error:
            self._turn_from(endpoint)
            raise Unreachable(endpoint, str(error) or "no answer in time") from None


def _may_be_repeated(error: QueueRefused, repeatable: bool) -> bool:
    return isinstance(error, QueueBusy) or (repeatable and error.status >= _FAULTS)


class _Told(msgspec.Struct):
    type_: str = msgspec.field(default="", name="__type")
    message: str = ""
    message_in_capitals: str = msgspec.field(default="", name="Message")


def _refusal_of(reply: Reply, action: str) -> QueueRefused:
    try:
        told = msgspec.json.decode(reply.body, type=_Told)
    except msgspec.DecodeError:  # a proxy in between, or no server of queues at all
        told = _Told()
    code = told.type_ or ("ServiceUnavailable" if reply.status == 503 else f"status {reply.status}")
    return refusal(code, told.message or told.message_in_capitals, status=reply.status, action=action)


def _decoded(body: bytes, action: str) -> dict[str, Any]:
    if not body:
        return {}
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise QueueRefused("NotUnderstood", f"the answer is not JSON: {error}", action=action) from None


def listed(answer: Mapping[str, Any], *names: str) -> Sequence[Any]:
    """The list under the first of these names that is there; servers leave empty ones out, and spell one in two ways."""
    return next((answer[name] for name in names if answer.get(name)), ())
