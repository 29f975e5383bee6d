"""What a client and this node say to each other in one login, by each mechanism.

What a reader could get wrong
    Whatever is wrong is `AuthenticationFailed`, whose text is for the log. The caller says the same to every client.
    A name that nobody has is led on to where a wrong password would fail, by the same work.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.ports import Clock, Pool, Rng
from ropewalk.metadata.users import UserIndex
from ropewalk.security.decoys import DECOY_KEY_BYTES, decoy
from ropewalk.security.plain import PasswordChecks, parse_plain
from ropewalk.security.scram import BY_NAME, Found, Mechanism, ScramConversation, ScramCredential

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (*BY_NAME, PLAIN)

_NONCE_BYTES: Final = 16


class Proved(Struct, frozen=True):
    """Who it is, and by what that was proved."""

    name: str
    mechanism: Mechanism
    credential: ScramCredential

    def still_counts(self, users: UserIndex) -> bool:
        """Whether the user still logs in with what it proved."""
        return users.of(self.name).get(self.mechanism) == self.credential


class Said(Struct, frozen=True):
    """What the client is told next; with the last of it comes who it is."""

    answer: bytes
    proved: Proved | None = None


class Exchange(Protocol):
    @property
    def name(self) -> str | None:
        """Who the client says it is, as soon as it has said so."""

    async def next(self, message: bytes) -> Said:
        """Raises `AuthenticationFailed`, or `Throttled` where too many others wait."""


class Exchanges:
    """Begins those of all connections of a node."""

    def __init__(self, users: UserIndex, *, rng: Rng, pool: Pool, clock: Clock) -> None:
        self._users = users
        self._rng = rng
        self._checks = PasswordChecks(pool, clock, rng)

    @cached_property
    def _own_key(self) -> bytes:
        """Of this process: while a cluster has no user there is none to be told from others."""
        return self._rng.randbytes(DECOY_KEY_BYTES)

    def begin(self, mechanism: str) -> Exchange:
        if mechanism == PLAIN:
            return _Plain(self, self._users, self._checks)
        nonce = self._rng.randbytes(_NONCE_BYTES).hex()
        return _Scram(self, BY_NAME[mechanism], nonce)

    def find(self, mechanism: Mechanism, name: str) -> Found:
        """The decoy is made for everybody, so that it takes as long for those who are there."""
        users = self._users
        shape = users.usual_shape(mechanism)
        made = decoy(
            users.decoy_key or self._own_key,
            mechanism,
            name,
            iterations=shape.iterations,
            salt_bytes=shape.salt_bytes,
        )
        held = users.of(name).get(mechanism)
        return Found(made, is_decoy=True) if held is None else Found(held)


class _Scram:
    def __init__(self, exchanges: Exchanges, mechanism: Mechanism, nonce: str) -> None:
        self._mechanism = mechanism
        self._conversation = ScramConversation(mechanism, nonce, lambda name: exchanges.find(mechanism, name))
        self._has_begun = False

    @property
    def name(self) -> str | None:
        return self._conversation.name

    async def next(self, message: bytes) -> Said:
        if not self._has_begun:
            self._has_begun = True
            return Said(self._conversation.on_first(message))
        answer = self._conversation.on_final(message)
        name, credential = self._conversation.name, self._conversation.credential
        assert name is not None and credential is not None, "the first message says who it is"  # noqa: PT018
        return Said(answer, Proved(name, self._mechanism, credential))


class _Plain:
    def __init__(self, exchanges: Exchanges, users: UserIndex, checks: PasswordChecks) -> None:
        self._exchanges = exchanges
        self._users = users
        self._checks = checks
        self.name: str | None = None

    async def next(self, message: bytes) -> Said:
        name, password = parse_plain(message)
        self.name = name
        mechanism = self._mechanism_of(name)
        found = self._exchanges.find(mechanism, name)
        is_right = await self._checks.proves(password, name, mechanism, found.credential)
        if found.is_decoy:
            raise AuthenticationFailed("PLAIN: there is no such user")
        if not is_right:
            raise AuthenticationFailed("PLAIN: the password is wrong")
        return Said(b"", Proved(name, mechanism, found.credential))

    def _mechanism_of(self, name: str) -> Mechanism:
        """By which the password is compared: the strongest that the user has, and for nobody that of most."""
        held = self._users.of(name)
        return max(held) if held else self._users.usual_mechanism


def offered(enabled: Sequence[str], *, is_private: bool) -> tuple[str, ...]:
    """`is_private`: nobody else can listen, since the connection is encrypted or does not leave the machine."""
    return tuple(enabled) if is_private else ()
