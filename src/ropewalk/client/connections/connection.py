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
"""

import asyncio
from collections import deque
from functools import partial
from typing import Any, Generic, TypeVar, cast

from msgspec import Struct

from ropewalk.base.errors import ProtocolError, RopewalkError, TimedOut
from ropewalk.base.limits import CLIENT_REQUESTS_MAX, CLIENT_RESPONSE_BYTES_MAX
from ropewalk.base.ports import Clock, Network
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.frame_buffer import FrameBuffer
from ropewalk.client.connections.versions import (
    Versions,
    newest_for_discovery,
    older_for_discovery,
    read_discovery,
)
from ropewalk.client.errors import ConnectionLost, Unreachable
from ropewalk.wire.api import API_VERSIONS_KEY, Api
from ropewalk.wire.frames import frame
from ropewalk.wire.headers import decode_response_header, encode_request_header
from ropewalk.wire.messages import api_versions
from ropewalk.wire.types import Message

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
        cls, network: Network, clock: Clock, address: Address, *, client_id: str, deadline_ms: float
    ) -> "Connection":
        """Connect and learn what the broker offers. Raises `Unreachable` when either does not succeed."""
        connection = cls(address, clock, client_id)
        remaining_ms = deadline_ms - clock.monotonic_ms()
        try:
            async with asyncio.timeout(remaining_ms / 1000):
                await network.connect(lambda: connection._socket, address.host, address.port)
        except TimeoutError:
            raise Unreachable(address, f"no answer within {remaining_ms:.0f} ms") from None
        except OSError as error:
            raise Unreachable(address, _reason(error)) from None
        try:
            await connection._discover(deadline_ms)
        except (ConnectionLost, ProtocolError, TimedOut) as error:
            connection.close()
            raise Unreachable(address, f"it does not answer as a Kafka broker: {error}") from None
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

    @property
    def is_writable(self) -> bool:
        return not self._is_paused and len(self._expected) < CLIENT_REQUESTS_MAX

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
            self._waiting_for_end.append(waiter)
            await waiter

    def write(self, client_id: str, api: Api[Q, R], version: int, request: Q) -> int:
        """The correlation id under which the answer will come."""
        if not self.is_open or self._transport is None:
            raise self._ended_by or ConnectionLost(f"the connection to {self._address} is not open")
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = encode_request_header(api, version, self._correlation_id, client_id)
        self._transport.writelines(frame([header, *api.encode_request(version, request)]))
        return self._correlation_id

    def expect(self, api: Api[Q, R], version: int, correlation_id: int, limit: _Limit) -> "asyncio.Future[R]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        handle = loop.call_at(limit.until_s, self._on_late, limit, answer)
        self._expected.append(_Expected(api, version, correlation_id, answer, handle))
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
        while self._expected:
            self._expected.popleft().fail(self._ended_by)
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
        reason = _reason(exc) if isinstance(exc, OSError) else "closed by the broker"
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
        self._expected.popleft().take(payload)
        if self._waiting_to_write and self.is_writable:
            self._wake_writers()

    def _on_late(self, limit: _Limit, waiter: "asyncio.Future[T]") -> None:
        """One request is late: it has timed out. The others have lost their connection, and may try another."""
        text = f"{self._address} did not answer {limit.name} within {limit.allowed_ms:.0f} ms"
        if not waiter.done():
            waiter.set_exception(TimedOut(text))
        self.end(ConnectionLost(text))

    def _wake_writers(self) -> None:
        while self._waiting_to_write:
            waiter = self._waiting_to_write.popleft()
            if not waiter.done():
                waiter.set_result(None)


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
