"""The members of an etcd cluster, one after the other: whoever answers is asked, until it does not.

Three kinds of failure, because the difference is what safety rests on:

    Refused       etcd has answered, and the answer is no: nothing was done
    Unreachable   no member took the request: nothing was done
    Unanswered    it was sent, and no answer came that says what happened: it may be done, even later
    NoSpace       an Unanswered that etcd did answer: it has no space, and may have done it all the same, but not later

What a reader could get wrong
    `ask` repeats a request until somebody answers, so it is for what may be repeated. `tell` sends it once.
    A member that is cut off from the others accepts requests and does not answer them: a timeout changes the member.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import (
    ETCD_ANSWER_BYTES_MAX,
    ETCD_ASK_MS_MAX,
    ETCD_ATTEMPT_MS_MAX,
    ETCD_CONNECT_MS_MAX,
    ETCD_CONNECTIONS_IDLE_MAX,
    ETCD_TELL_MS_MAX,
)
from ropewalk.base.ports import Clock, Network, TlsContexts
from ropewalk.http1.client import ClientConnection, Reply
from ropewalk.metadata.etcd import messages
from ropewalk.metadata.etcd.messages import Failure, Message, StreamAnswer, WatchAnswer, decode

M = TypeVar("M")

_INVALID_ARGUMENT: Final = 3
_NOT_FOUND: Final = 5
_PERMISSION_DENIED: Final = 7
_RESOURCE_EXHAUSTED: Final = 8
_FAILED_PRECONDITION: Final = 9
_OUT_OF_RANGE: Final = 11
_UNIMPLEMENTED: Final = 12
_UNAUTHENTICATED: Final = 16
DEFINITE: Final = frozenset(
    {
        _INVALID_ARGUMENT,
        _NOT_FOUND,
        _PERMISSION_DENIED,
        _RESOURCE_EXHAUSTED,
        _FAILED_PRECONDITION,
        _OUT_OF_RANGE,
        _UNIMPLEMENTED,
        _UNAUTHENTICATED,
    }
)
"""gRPC codes with which etcd says no before or instead of doing anything. All others may come after it was done.

One text of RESOURCE_EXHAUSTED is an exception, see `NoSpace`."""
_TOKEN_IS_STALE: Final = ("invalid auth token", "revision of auth store is old", "user name is empty")


class Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_full(self) -> bool:
        return self.code == _RESOURCE_EXHAUSTED and "space" in str(self)

    @property
    def is_about_token(self) -> bool:
        return any(text in str(self) for text in _TOKEN_IS_STALE)


class Unreachable(Exception):
    pass


class Unanswered(Exception):
    pass


class NoSpace(Unanswered):
    """etcd looks at its quota before a request is proposed, and again after it was applied: the second time it says that there
    is no space, and what was asked for is done."""


class Member(Struct, frozen=True):
    host: str
    port: int
    is_tls: bool

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Access(Struct, frozen=True):
    """How etcd is reached, and as whom."""

    members: tuple[Member, ...]
    tls: TlsContexts | None = None
    user: str = ""
    password: str = ""


def parse_members(urls: Sequence[str]) -> tuple[Member, ...]:
    return tuple(_parse_member(url.strip()) for url in urls)


class EtcdClient:
    def __init__(self, network: Network, clock: Clock, access: Access) -> None:
        self._network = network
        self._clock = clock
        self._access = access
        self._current = 0
        self._idle: list[tuple[int, ClientConnection]] = []
        self._token: str | None = None

    @property
    def members(self) -> str:
        return ", ".join(map(str, self._access.members))

    async def ask(self, path: str, request: Message, kind: type[M]) -> M:
        """For what may be done twice: every member is tried, until time is up."""
        deadline_ms = self._clock.monotonic_ms() + ETCD_ASK_MS_MAX
        while True:
            try:
                return await self._call(path, request, kind, attempt_ms=ETCD_ATTEMPT_MS_MAX)
            except (Unreachable, Unanswered) as error:
                if self._clock.monotonic_ms() >= deadline_ms:
                    raise Unreachable(str(error)) from error
                await asyncio.sleep(_PAUSE_S)

    async def tell(self, path: str, request: Message, kind: type[M]) -> M:
        """For what must not be done twice: sent to one member, once."""
        try:
            return await self._call(path, request, kind, attempt_ms=ETCD_TELL_MS_MAX)
        except Refused as refused:
            if not refused.is_full:
                raise
            raise NoSpace(str(refused)) from refused

    async def watch(self, request: Message) -> "Watch":
        """Events of etcd's leader: a member that has lost it ends the watch instead of being silent."""
        try:
            async with asyncio.timeout(ETCD_ATTEMPT_MS_MAX / 1000):
                await self._authenticate_if_due()
                index, connection = await self._connected(fresh=True)
        except TimeoutError as error:
            self._pass_over(self._current)
            raise Unreachable(f"{self._member(self._current)} does not answer") from error
        connection.begin(self._encode(index, messages.WATCH, request, watches=True))
        return Watch(connection, lambda: self._pass_over(index))

    def close(self) -> None:
        for _, connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _call(self, path: str, request: Message, kind: type[M], *, attempt_ms: float) -> M:
        try:
            async with asyncio.timeout(attempt_ms / 1000):
                await self._authenticate_if_due()
        except (TimeoutError, Unanswered) as error:
            raise Unreachable(f"{self._member(self._current)} does not say who we are: {error}") from error
        try:
            return await self._exchange(path, request, kind, attempt_ms=attempt_ms)
        except Refused as refused:
            if not refused.is_about_token or not self._access.user:
                raise
            self._token = None  # it was refused unread, so it may be sent again
        await self._authenticate_if_due()
        return await self._exchange(path, request, kind, attempt_ms=attempt_ms)

    async def _exchange(self, path: str, request: Message, kind: type[M], *, attempt_ms: float) -> M:
        index, connection = await self._connected(fresh=False)
        is_done = False
        try:
            async with asyncio.timeout(attempt_ms / 1000):
                answer = await connection.request(self._encode(index, path, request))
            value = _read(answer, kind)
            is_done = True
        except Refused:
            is_done = True
            raise
        except (OSError, ValueError) as error:  # TimeoutError is an OSError
            self._pass_over(index)
            reason = str(error) or f"no answer in {attempt_ms:.0f} ms"
            raise Unanswered(f"{self._member(index)}: {reason}") from error
        finally:
            if is_done and connection.is_open and len(self._idle) < ETCD_CONNECTIONS_IDLE_MAX:
                self._idle.append((index, connection))
            else:
                connection.close()
        return value

    async def _connected(self, *, fresh: bool) -> tuple[int, ClientConnection]:
        """A connection to the current member, or to the first after it that takes one."""
        while self._idle and not fresh:
            index, connection = self._idle.pop()
            if index == self._current and connection.is_open:
                return index, connection
            connection.close()
        reason = "no members"
        for _ in self._access.members:
            index = self._current
            member = self._member(index)
            tls = self._access.tls if member.is_tls else None
            try:
                async with asyncio.timeout(ETCD_CONNECT_MS_MAX / 1000):
                    return index, await ClientConnection.open(
                        self._network,
                        member.host,
                        member.port,
                        tls=tls,
                        answer_bytes_max=ETCD_ANSWER_BYTES_MAX,
                    )
            except OSError as error:
                reason = f"{member}: {error or 'no connection in time'}"
                self._pass_over(index)
        raise Unreachable(reason)

    def _pass_over(self, index: int) -> None:
        """The next is asked from now on, unless somebody has moved on already."""
        if index == self._current:
            self._current = (index + 1) % len(self._access.members)

    def _member(self, index: int) -> Member:
        return self._access.members[index]

    def _encode(self, index: int, path: str, request: Message, *, watches: bool = False) -> bytes:
        body = msgspec.json.encode(request)
        head = f"POST {path} HTTP/1.1\r\nHost: {self._member(index)}\r\nContent-Type: application/json\r\n"
        if self._token is not None:
            head += f"Authorization: {self._token}\r\n"
        if watches:
            head += "Grpc-Metadata-hasleader: true\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def _authenticate_if_due(self) -> None:
        if not self._access.user or self._token is not None:
            return
        request: Message = {"name": self._access.user, "password": self._access.password}
        path, kind = messages.AUTHENTICATE, messages.Authenticated
        self._token = (await self._exchange(path, request, kind, attempt_ms=ETCD_ATTEMPT_MS_MAX)).token


class Watch:
    """A stream of events. Whoever ends it early must `close`."""

    def __init__(self, connection: ClientConnection, pass_over: Callable[[], None]) -> None:
        self._connection = connection
        self._pass_over = pass_over

    async def next(self) -> WatchAnswer:
        """Raises `Unanswered` when it has ended, for whatever reason."""
        try:
            line = await self._connection.line()
            if line is None:
                raise Unanswered("the watch has ended")
            answer = decode(line, StreamAnswer)
        except (OSError, ValueError) as error:
            self._pass_over()
            raise Unanswered(f"the watch was lost: {error}") from error
        if answer.result is None:
            self._pass_over()
            reason = answer.error.message if answer.error is not None else line[:100].decode(errors="replace")
            raise Unanswered(f"the watch was refused: {reason}")
        return answer.result

    def close(self) -> None:
        self._connection.close()


def _read(answer: Reply, kind: type[M]) -> M:
    if answer.status == 200:
        return decode(answer.body, kind)
    failure = decode(answer.body, Failure)
    code = failure.code or failure.grpc_code
    if code in DEFINITE:
        raise Refused(code, failure.message)
    raise OSError(f"status {answer.status}: {failure.message}")


def _parse_member(url: str) -> Member:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise InvalidSetting(f"{url!r} is no address of an etcd member; it looks like http://HOST:2379")
    return Member(parts.hostname, port or _PORT, parts.scheme == "https")


_PORT: Final = 2379
_PAUSE_S: Final = 0.05
"""Between attempts: members that refuse at once would otherwise be asked in a tight loop."""
