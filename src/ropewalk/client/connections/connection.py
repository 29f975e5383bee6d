"""One connection to one broker, with any number of requests in flight.

A broker answers the requests of one connection in the order in which they came, so the answers are matched
by position and the correlation id is checked, not searched for. The first exchange is ApiVersions: from
then on every request is sent in the newest version that both sides speak.

What a reader could get wrong
    `send` writes before it returns, so the order of calls is the order at the broker. `call` may first wait
    for the socket to drain.
    A request that misses its deadline ends the connection: every answer behind it is late as well, and a
    connection that swallows requests is better replaced.
    A long poll delays all answers behind it. Whoever polls should have a connection for it.
    While somebody has the connection for itself (`alone`), as for another login, what others send is kept and sent after that.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

from ropewalk.base.errors import ProtocolError, RopewalkError, TimedOut
from ropewalk.base.limits import CLIENT_REQUESTS_MAX, CLIENT_RESPONSE_BYTES_MAX
from ropewalk.base.ports import Clock, Network, TlsContexts
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.frame_buffer import FrameBuffer
from ropewalk.client.connections.versions import (
    Versions,
    newest_for_discovery,
    older_for_discovery,
    read_discovery,
)
from ropewalk.client.errors import ConnectionLost, NotAnswered, Unreachable
from ropewalk.wire.api import API_VERSIONS_KEY, Api
from ropewalk.wire.frames import frame
from ropewalk.wire.headers import decode_response_header, encode_request_header
from ropewalk.wire.messages import api_versions
from ropewalk.wire.types import Buffer, Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
T = TypeVar("T")


class Connection:
    """Made by `open`; ends by `close`, by the broker, or by a missed deadline. It is never reopened."""

    def __init__(self, address: Address, clock: Clock, client_id: str) -> None:
        self.address = address
        self.versions = Versions(())
        self._clock = clock
        self._client_id = client_id
        self._socket = _Socket(address)

    @classmethod
    async def open(
        cls,
        network: Network,
        clock: Clock,
        address: Address,
        *,
        client_id: str,
        deadline_ms: float,
        tls: TlsContexts | None = None,
    ) -> "Connection":
        """Connect and learn what the broker offers. Raises `Unreachable` when either does not succeed.

        With `tls` an `ssl.SSLError` is raised as it is: what it means depends on what the caller has set.
        """
        connection = cls(address, clock, client_id)
        remaining_ms = deadline_ms - clock.monotonic_ms()
        try:
            async with asyncio.timeout(remaining_ms / 1000):
                await network.connect(lambda: connection._socket, address.host, address.port, tls=tls)
        except TimeoutError:
            raise Unreachable(address, f"no answer within {remaining_ms:.0f} ms") from None
        except ssl.SSLError as error:
            if not isinstance(error, ssl.SSLEOFError):
                raise
            raise NotAnswered(address, _LOST_IN_HANDSHAKE) from None
        except ConnectionResetError as error:
            raise NotAnswered(address, _LOST_IN_HANDSHAKE if tls is not None else _reason(error)) from None
        except OSError as error:
            raise Unreachable(address, _reason(error)) from None
        try:
            await connection._discover(deadline_ms)
        except (ConnectionLost, ProtocolError, TimedOut) as error:
            connection.close()
            if connection._socket.tls_error is not None:
                raise connection._socket.tls_error from None
            reason = f"it does not answer as a Kafka broker: {error}"
            raise (Unreachable if isinstance(error, TimedOut) else NotAnswered)(address, reason) from None
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._socket.is_open

    @property
    def is_writable(self) -> bool:
        """Whether it is open, and a request sent now goes out at once."""
        return self._socket.is_open and self._socket.is_writable

    @property
    def certificate(self) -> bytes | None:
        """What the broker showed, in DER; None without TLS."""
        return self._socket.certificate

    async def wait_writable(self, *, deadline_ms: float) -> None:
        """Raises `ConnectionLost` or `TimedOut`."""
        if not self._socket.is_writable:
            await self._socket.wait_writable(self._limit(api_versions.API, deadline_ms))

    def close(self) -> None:
        """What was written is still sent; what waits for an answer ends with `ConnectionLost`."""
        self._socket.end(ConnectionLost(f"the connection to {self.address} was closed"), orderly=True)

    async def wait_end(self) -> None:
        """Return when the connection is no longer open, for whatever reason."""
        await self._socket.wait_end()

    async def call(
        self, api: Api[Q, R], request: Q, *, deadline_ms: float, version_max: int | None = None
    ) -> R:
        """Send `request` and wait for its answer.

        Raises `ApiNotOffered` before anything is sent; `ConnectionLost` and `TimedOut` leave open whether
        the request took effect.
        """
        version = self.versions.choose(api, version_max=version_max)
        if not self._socket.is_writable:
            await self._socket.wait_writable(self._limit(api, deadline_ms))
        return await self.send(api, version, request, deadline_ms=deadline_ms)

    async def call_unanswered(
        self, api: Api[Q, R], request: Q, *, deadline_ms: float, version_max: int | None = None
    ) -> None:
        """For the one request without an answer: Produce with acks=0."""
        version = self.versions.choose(api, version_max=version_max)
        if not self._socket.is_writable:
            await self._socket.wait_writable(self._limit(api, deadline_ms))
        self.send_unanswered(api, version, request)

    def send(self, api: Api[Q, R], version: int, request: Q, *, deadline_ms: float) -> "asyncio.Future[R]":
        """Write `request` at once; the future is its answer."""
        correlation_id = self._socket.write(self._client_id, api, version, request)
        return self._socket.expect(api, version, correlation_id, self._limit(api, deadline_ms))

    def send_unanswered(self, api: Api[Q, R], version: int, request: Q) -> None:
        """Write `request` at once, whether or not the socket has room; nothing comes back."""
        self._socket.write(self._client_id, api, version, request)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until all that was asked is answered. Until the end only `call_alone` reaches the broker; what others send follows after it.

        Raises `ConnectionLost`.
        """
        self._socket.hold()
        try:
            await self._socket.wait_answered()
            yield
        finally:
            self._socket.release()

    async def call_alone(self, api: Api[Q, R], request: Q, *, deadline_ms: float) -> R:
        """As `call`, within `alone` or before anybody else has the connection."""
        version = self.versions.choose(api)
        limit = self._limit(api, deadline_ms)
        correlation_id = self._socket.write(self._client_id, api, version, request, is_alone=True)
        return await self._socket.expect(api, version, correlation_id, limit, is_alone=True)

    def hint_when_unanswered(self, hint: str) -> None:
        """What to say beside it when the broker hangs up instead of answering the first request."""
        self._socket.hint_when_unanswered = hint

    def fail(self, error: RopewalkError) -> None:
        """End it, and all who wait for an answer, for this reason."""
        self._socket.end(error)

    async def _discover(self, deadline_ms: float) -> None:
        """Ask in the newest version. A broker that is older refuses, and says which it knows (KIP-511); then ask in that."""
        api = api_versions.API
        version: int | None = newest_for_discovery()
        while version is not None:
            response = await self.send(api, version, _discovery_request(), deadline_ms=deadline_ms)
            versions = read_discovery(response)
            if versions is not None:
                self.versions = versions
                return
            version = older_for_discovery(response, version)
        raise ProtocolError("ApiVersions is refused in version 0 as well")

    def _limit(self, api: Api[Q, R], deadline_ms: float) -> "_Limit":
        allowed_ms = max(0.0, deadline_ms - self._clock.monotonic_ms())
        return _Limit(api.name, allowed_ms, asyncio.get_running_loop().time() + allowed_ms / 1000)


class _Limit(Struct, frozen=True):
    """How long a request may take, until when on the loop's clock, and what to call it when it takes longer."""

    name: str
    allowed_ms: float
    until_s: float


class _Expected(Generic[R]):
    """A request whose answer has not come. If `answer` is cancelled nobody waits, but the answer still comes."""

    __slots__ = ("answer", "api", "correlation_id", "timer", "version")

    def __init__(
        self,
        api: Api[Q, R],
        version: int,
        correlation_id: int,
        answer: "asyncio.Future[R]",
        timer: asyncio.TimerHandle,
    ) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.answer = answer
        self.timer = timer

    def take(self, payload: memoryview) -> None:
        """Decode the answer for whoever waits. What cannot be decoded fails the request, and is raised."""
        version = self.version
        if self.api.key == API_VERSIONS_KEY and payload[4:6] == _UNSUPPORTED_VERSION:
            version = 0  # a refusal of our version is written in a layout that everyone can read (KIP-511)
        try:
            correlation_id, position = decode_response_header(self.api, version, payload, 0, len(payload))
            if correlation_id != self.correlation_id:
                raise ProtocolError(f"answer {correlation_id} came where {self.correlation_id} was due")
            response = self.api.decode_response(version, payload, position, len(payload))
        except ProtocolError as error:
            self.fail(ConnectionLost(f"{self.api.name} was answered with what is not its protocol: {error}"))
            raise
        self.timer.cancel()
        if not self.answer.done():
            self.answer.set_result(response)

    def fail(self, error: RopewalkError) -> None:
        self.timer.cancel()
        if not self.answer.done():
            self.answer.set_exception(error)


class _Held:
    """Frames that wait, how many they are, and those of them that are answered."""

    __slots__ = ("chunks", "count", "expected")

    def __init__(self) -> None:
        self.chunks: list[Buffer] = []
        self.count = 0
        self.expected: deque[_Expected[Any]] = deque()


class _Socket(asyncio.BufferedProtocol):
    """The event loop's end: frames in and out, in order."""

    def __init__(self, address: Address) -> None:
        self.is_open = False
        self._address = address
        self._transport: asyncio.Transport | None = None
        self._frames = FrameBuffer(frame_bytes_max=CLIENT_RESPONSE_BYTES_MAX)
        self._expected: deque[_Expected[Any]] = deque()
        self._correlation_id = 0
        self._ended_by: RopewalkError | None = None
        self._is_paused = False
        self._waiting_to_write: deque[asyncio.Future[None]] = deque()
        self._waiting_for_end: list[asyncio.Future[None]] = []
        self._held: _Held | None = None
        """What was written while somebody had the connection for itself; None while nobody has."""
        self._answered: asyncio.Future[None] | None = None
        self._has_answered = False
        """Anything but which versions it speaks."""
        self.hint_when_unanswered = ""
        self.tls_error: ssl.SSLError | None = None
        """What the other side has said of the handshake after it: that of TLS 1.3 is over before a client's certificate was looked at."""

    @property
    def is_writable(self) -> bool:
        held_count = 0 if self._held is None else self._held.count
        return not self._is_paused and len(self._expected) + held_count < CLIENT_REQUESTS_MAX

    @property
    def certificate(self) -> bytes | None:
        return None if self._transport is None else self._transport.get_extra_info("peercert_der")

    def hold(self) -> None:
        assert self._held is None, "one at a time has the connection for itself"
        self._held = _Held()

    def release(self) -> None:
        held, self._held = self._held, None
        if held is None or self._transport is None or not self.is_open:
            return
        self._expected += held.expected
        if held.chunks:
            self._transport.writelines(held.chunks)

    async def wait_answered(self) -> None:
        """Raises what the connection ended by, if it did."""
        if self._expected:
            self._answered = asyncio.get_running_loop().create_future()
            await self._answered
        if not self.is_open:
            raise self._ended_by or ConnectionLost(f"the connection to {self._address} is not open")

    async def wait_writable(self, limit: _Limit) -> None:
        loop = asyncio.get_running_loop()
        while self.is_open and not self.is_writable:
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiting_to_write.append(waiter)
            handle = loop.call_at(limit.until_s, partial(self._on_late, limit, waiter))
            try:
                await waiter
            finally:
                handle.cancel()

    async def wait_end(self) -> None:
        if self.is_open:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting_for_end = [each for each in self._waiting_for_end if not each.done()]
            self._waiting_for_end.append(waiter)
            await waiter

    def write(
        self, client_id: str, api: Api[Q, R], version: int, request: Q, *, is_alone: bool = False
    ) -> int:
        """The correlation id under which the answer will come."""
        if not self.is_open or self._transport is None:
            raise self._ended_by or ConnectionLost(f"the connection to {self._address} is not open")
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = encode_request_header(api, version, self._correlation_id, client_id)
        chunks = frame([header, *api.encode_request(version, request)])
        if self._held is not None and not is_alone:
            self._held.chunks += chunks
            self._held.count += 1
        else:
            self._transport.writelines(chunks)
        return self._correlation_id

    def expect(
        self,
        api: Api[Q, R],
        version: int,
        correlation_id: int,
        limit: _Limit,
        *,
        is_alone: bool = False,
    ) -> "asyncio.Future[R]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        handle = loop.call_at(limit.until_s, self._on_late, limit, answer)
        expected = self._expected if self._held is None or is_alone else self._held.expected
        expected.append(_Expected(api, version, correlation_id, answer, handle))
        return answer

    def end(self, error: RopewalkError, *, orderly: bool = False) -> None:
        """Close, and tell everyone who waits why. The first reason given is the one that counts."""
        if self._ended_by is None:
            self._ended_by = error
        self.is_open = False
        if self._transport is not None and orderly:
            self._transport.close()
        elif self._transport is not None:
            self._transport.abort()
        for expected in (self._expected, () if self._held is None else self._held.expected):
            for each in expected:
                each.fail(self._ended_by)
        self._expected.clear()
        self._wake_answered()
        self._wake_writers()
        waiting, self._waiting_for_end = self._waiting_for_end, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of `asyncio.Transport` but not the class.
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = self._ended_by is None
        if self._ended_by is not None:  # closed while it was being made
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError):
            self.tls_error = exc
        reason = _reason(exc) if isinstance(exc, OSError) else "closed by the broker"
        if self._expected and not self._has_answered:
            reason += self.hint_when_unanswered
        self.end(ConnectionLost(f"the connection to {self._address} ended: {reason}"))

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._wake_writers()

    def get_buffer(self, _: int) -> memoryview:
        return self._frames.room()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for payload in self._frames.on_received(nbytes):
                self._on_frame(payload)
        except ProtocolError as error:
            self.end(ConnectionLost(f"{self._address} sent what is not Kafka's protocol: {error}"))

    def _on_frame(self, payload: memoryview) -> None:
        if not self._expected:
            raise ProtocolError("an answer to nothing that was asked")
        expected = self._expected.popleft()
        self._has_answered = self._has_answered or expected.api.key != API_VERSIONS_KEY
        expected.take(payload)
        if not self._expected:
            self._wake_answered()
        if self._waiting_to_write and self.is_writable:
            self._wake_writers()

    def _on_late(self, limit: _Limit, waiter: "asyncio.Future[T]") -> None:
        """One request is late: it has timed out. The others have lost their connection, and may try another."""
        text = f"{self._address} did not answer {limit.name} within {limit.allowed_ms:.0f} ms"
        if not waiter.done():
            waiter.set_exception(TimedOut(text))
        self.end(ConnectionLost(text))

    def _wake_answered(self) -> None:
        waiter, self._answered = self._answered, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _wake_writers(self) -> None:
        while self._waiting_to_write:
            waiter = self._waiting_to_write.popleft()
            if not waiter.done():
                waiter.set_result(None)


_LOST_IN_HANDSHAKE = "it hung up in the handshake of TLS"
_UNSUPPORTED_VERSION = (35).to_bytes(2, "big")


def _discovery_request() -> api_versions.ApiVersionsRequest:
    from ropewalk import __version__

    return api_versions.ApiVersionsRequest(
        client_software_name="ropewalk", client_software_version=__version__
    )


def _reason(error: OSError) -> str:
    """The operating system's words for it, without its numbers."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    # asyncio joins the failures of several addresses of one name into a text without an errno.
    if "Connect call failed" in str(error) or "Multiple exceptions" in str(error):
        return "connection refused"
    return (error.strerror or str(error) or type(error).__name__).lower()
