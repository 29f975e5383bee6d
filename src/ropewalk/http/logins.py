"""Who asks at the HTTP door: by a bearer token, by a name and a password, or nobody in particular.

What a reader could get wrong
    Both are taken over TLS or from this machine only: elsewhere anybody could listen, and whoever shows one there has shown it to everybody.
    Whoever shows something that is wrong is refused, also where nobody would have had to show anything.
    A failure is answered after a delay that counts from the request, so that it does not tell how long the comparison took.
"""

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import structlog

from ropewalk.base.complaints import Complaints
from ropewalk.base.errors import AuthenticationFailed, Throttled
from ropewalk.base.limits import PLAIN_MESSAGE_BYTES_MAX
from ropewalk.base.loopback import is_loopback
from ropewalk.base.ports import Clock
from ropewalk.broker.bearers import Bearers
from ropewalk.broker.passwords import Passwords
from ropewalk.http1.message import Request, Visitor
from ropewalk.http1.parser import Refused
from ropewalk.security.identity import ANONYMOUS_IDENTITY, Identity

BASIC: Final = "Basic"
"""The method of an identity that was proved by a name and a password."""

_AUTHORIZATION: Final = "authorization"
_UNPROTECTED: Final = (
    "a password or a token is taken over TLS, or from the node's own machine, and nowhere else"
)
_REFUSED: Final = "the name, the password or the token is not right"
"""What every client is told, whatever was wrong."""

_log = structlog.get_logger()


class NobodyKnown(Refused):
    """Who asks has to say who it is; the answer says how."""


class Logins:
    def __init__(
        self,
        bearers: Bearers,
        passwords: Passwords,
        clock: Clock,
        *,
        is_encrypted: bool,
        delay_ms: Callable[[], int],
    ) -> None:
        """`delay_ms` is how long a failure is kept back."""
        self._bearers = bearers
        self._passwords = passwords
        self._clock = clock
        self._is_encrypted = is_encrypted
        self._delay_ms = delay_ms
        self._complaints = Complaints()

    async def identify(self, request: Request, visitor: Visitor) -> Identity:
        """Raises `Refused`; `NobodyKnown` where what was shown is wrong."""
        shown = request.headers.get(_AUTHORIZATION)
        if shown is None:
            return ANONYMOUS_IDENTITY
        if not (self._is_encrypted or is_loopback(visitor.address)):
            raise Refused(HTTPStatus.FORBIDDEN, _UNPROTECTED)
        begun_ms = self._clock.monotonic_ms()
        try:
            return await self._proved(shown)
        except AuthenticationFailed as error:
            self._complain(visitor.address, str(error))
            await self._wait_until(begun_ms + self._delay_ms(), visitor)
            raise NobodyKnown(HTTPStatus.UNAUTHORIZED, _REFUSED) from None
        except Throttled:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many others say who they are just now"
            ) from None

    async def _proved(self, shown: str) -> Identity:
        scheme, _, said = shown.partition(" ")
        if scheme.lower() == "bearer":
            return await self._bearers.identify(said.strip())
        if scheme.lower() == "basic":
            name, password = parse_basic(said.strip())
            return (await self._passwords.prove(name, password, BASIC)).identity
        raise AuthenticationFailed("what was shown is neither Bearer nor Basic")

    def _complain(self, host: str, reason: str) -> None:
        if self._complaints.is_due(f"{host} {reason}", self._clock.monotonic_ms()):
            _log.warning("a login failed", client=host, listener="http", reason=reason)

    async def _wait_until(self, at_ms: float, visitor: Visitor) -> None:
        wait_s = (at_ms - self._clock.monotonic_ms()) / 1000
        if wait_s > 0:
            delay = _Delay(wait_s)
            with visitor.hold_while(delay):
                await delay.over


class _Delay:
    """Ends when its time is over, or when nobody wants the answer any more."""

    def __init__(self, wait_s: float) -> None:
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = loop.create_future()
        self._timer = loop.call_later(wait_s, self._end)

    def hurry(self) -> None:
        """Whoever sends no more can still read the answer: it comes when it is due."""

    def abandon(self) -> None:
        self._timer.cancel()
        self._end()

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


def parse_basic(said: str) -> tuple[str, bytes]:
    """The name and the password (RFC 7617); raises `AuthenticationFailed`.

    >>> parse_basic("YWxpY2U6c2U6Y3JldA==")
    ('alice', b'se:cret')
    """
    if len(said) > 2 * PLAIN_MESSAGE_BYTES_MAX:
        raise AuthenticationFailed(f"{BASIC}: longer than a name and a password may be")
    try:
        name, colon, password = b64decode(said, validate=True).partition(b":")
        if not (name and colon and password):
            raise AuthenticationFailed(f"{BASIC}: the name or the password is empty")
        return name.decode(), password
    except (binascii.Error, ValueError):
        raise AuthenticationFailed(f"{BASIC}: it is no name and password in Base64") from None
