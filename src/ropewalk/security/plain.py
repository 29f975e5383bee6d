"""PLAIN (RFC 4616), from the side of whoever is asked: a name and a password as they are, compared with what SCRAM keeps.

What a reader could get wrong
    Comparing costs as much as guessing: milliseconds of hashing. Hashes are made one at a time, in the pool, by whoever stands in line, and
    the line has an end.
    A password that proved right is remembered for a while, as a digest under a key that this process alone has, together with the
    credential that it proved. Wrong ones are not remembered, and a credential that has changed is another.
"""

import asyncio
import hmac
from collections import OrderedDict, deque
from functools import cached_property

from ropewalk.base.errors import AuthenticationFailed, Throttled
from ropewalk.base.limits import (
    PASSWORD_CHECKS_WAITING_MAX,
    PASSWORDS_REMEMBERED_MAX,
    PASSWORDS_REMEMBERED_MS,
    PLAIN_MESSAGE_BYTES_MAX,
)
from ropewalk.base.ports import Clock, Pool, Rng
from ropewalk.security.scram import Mechanism, ScramCredential, credential_of, salted


def parse_plain(message: bytes) -> tuple[str, bytes]:
    """The name and the password; raises `AuthenticationFailed`.

    >>> parse_plain(b"\\0alice\\0secret")
    ('alice', b'secret')
    """
    if len(message) > PLAIN_MESSAGE_BYTES_MAX:
        raise AuthenticationFailed(
            f"PLAIN: a message of {len(message)} bytes, at most {PLAIN_MESSAGE_BYTES_MAX} are read"
        )
    parts = message.split(b"\0")
    if len(parts) != 3:
        raise AuthenticationFailed(
            "PLAIN: the message is not made of a name to act as, a name and a password"
        )
    acting_as, name, password = parts
    if not name or not password:
        raise AuthenticationFailed("PLAIN: the name or the password is empty")
    if acting_as not in (b"", name):
        raise AuthenticationFailed("PLAIN: nobody may act as somebody else")
    try:
        return name.decode(), password
    except UnicodeDecodeError:
        raise AuthenticationFailed("PLAIN: the name is not UTF-8") from None


class PasswordChecks:
    """Of all connections of a node."""

    def __init__(self, pool: Pool, clock: Clock, rng: Rng) -> None:
        self._pool = pool
        self._clock = clock
        self._rng = rng
        self._remembered: OrderedDict[bytes, float] = OrderedDict()
        """Digests of what proved right, and until when that counts."""
        self._is_hashing = False
        self._line: deque[asyncio.Future[None]] = deque()

    @cached_property
    def _key(self) -> bytes:
        """Of this process, drawn when the first password is compared: most nodes never compare one."""
        return self._rng.randbytes(32)

    async def proves(
        self, password: bytes, name: str, mechanism: Mechanism, credential: ScramCredential
    ) -> bool:
        """Raises `Throttled` where too many others wait."""
        digest = self._digest(password, name, credential)
        if self._remembered.get(digest, 0.0) > self._clock.monotonic_ms():
            self._remembered.move_to_end(digest)
            return True
        salted_password = await self._salted(mechanism, password, credential)
        made = credential_of(mechanism, salted_password, credential.salt, credential.iterations)
        if not hmac.compare_digest(made.stored_key, credential.stored_key):
            return False
        self._remembered[digest] = self._clock.monotonic_ms() + PASSWORDS_REMEMBERED_MS
        self._remembered.move_to_end(digest)
        if len(self._remembered) > PASSWORDS_REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return True

    async def _salted(self, mechanism: Mechanism, password: bytes, credential: ScramCredential) -> bytes:
        if self._is_hashing:
            if len(self._line) >= PASSWORD_CHECKS_WAITING_MAX:
                raise Throttled(f"{len(self._line)} passwords wait to be compared")
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._line.append(turn)
            await turn
        self._is_hashing = True
        try:
            return await self._pool.run(salted, mechanism, password, credential.salt, credential.iterations)
        finally:
            self._is_hashing = bool(self._line)
            if self._line:
                self._line.popleft().set_result(None)

    def _digest(self, password: bytes, name: str, credential: ScramCredential) -> bytes:
        parts = (name.encode(), password, credential.salt, credential.stored_key)
        sized = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.digest(self._key, sized, "sha256")
