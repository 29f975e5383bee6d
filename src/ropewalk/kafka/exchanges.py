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
from ropewalk.broker.bearers import Bearers
from ropewalk.metadata.users import UserIndex
from ropewalk.security.decoys import DECOY_KEY_BYTES, decoy
from ropewalk.security.identity import BY_OAUTH, Identity
from ropewalk.security.oauthbearer import REFUSAL, parse_oauthbearer
from ropewalk.security.plain import PasswordChecks, parse_plain
from ropewalk.security.scram import BY_NAME, Found, Mechanism, ScramConversation, ScramCredential

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (*BY_NAME, PLAIN, BY_OAUTH)

_NONCE_BYTES: Final = 16


class Proof(Protocol):
    """Who it is, and by what that was proved."""

    @property
    def identity(self) -> Identity: ...

    @property
    def version(self) -> int:
        """Another once what was proved may be another, so that it is worth looking again."""

    def still_counts(self) -> bool:
        """Whether it would be proved again by the same."""


class _ByPassword:
    __slots__ = ("_credential", "_mechanism", "_name", "_users", "identity")

    def __init__(
        self, users: UserIndex, name: str, mechanism: Mechanism, credential: ScramCredential, method: str
    ) -> None:
        self._users = users
        self._name = name
        self._mechanism = mechanism
        self._credential = credential
        self.identity = Identity(f"User:{name}", (), method)

    @property
    def version(self) -> int:
        return self._users.version

    def still_counts(self) -> bool:
        """Whether the user still logs in with what it proved."""
        return self._users.of(self._name).get(self._mechanism) == self._credential


class Said(Struct, frozen=True):
    """What the client is told next; with the last of it comes who it is."""

    answer: bytes
    proved: Proof | None = None
    refused: str | None = None
    """Why it will be refused, for the log: the client has yet to take note of it."""


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

    def begin(self, mechanism: str, bearers: Bearers | None) -> Exchange:
        """`bearers` are whose tokens count where the client comes; without any none was offered."""
        if mechanism == BY_OAUTH:
            assert bearers is not None, "it was offered"
            return _Bearer(bearers)
        if mechanism == PLAIN:
            return _Plain(self, self._users, self._checks)
        nonce = self._rng.randbytes(_NONCE_BYTES).hex()
        return _Scram(self, self._users, BY_NAME[mechanism], nonce)

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
    def __init__(self, exchanges: Exchanges, users: UserIndex, mechanism: Mechanism, nonce: str) -> None:
        self._users = users
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
        mechanism = self._mechanism
        return Said(answer, _ByPassword(self._users, name, mechanism, credential, mechanism.sasl_name))


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
        return Said(b"", _ByPassword(self._users, name, mechanism, found.credential, PLAIN))

    def _mechanism_of(self, name: str) -> Mechanism:
        """By which the password is compared: the strongest that the user has, and for nobody that of most."""
        held = self._users.of(name)
        return max(held) if held else self._users.usual_mechanism


class _Bearer:
    def __init__(self, bearers: Bearers) -> None:
        self._bearers = bearers
        self._refused: str | None = None
        self.name: str | None = None

    async def next(self, message: bytes) -> Said:
        """The first failure is told in a message of the mechanism, and is one only when the client has answered that."""
        if self._refused is not None:
            raise AuthenticationFailed(self._refused)
        try:
            return Said(b"", await self._proved(message))
        except AuthenticationFailed as error:
            self._refused = str(error)
            return Said(REFUSAL, refused=self._refused)

    async def _proved(self, message: bytes) -> Proof:
        presented = parse_oauthbearer(message)
        self.name = presented.acting_as
        proof = await self._bearers.prove(presented.token)
        if presented.acting_as not in (None, proof.identity.name):
            raise AuthenticationFailed("OAUTHBEARER: nobody may act as somebody else")
        return proof


def offered(enabled: Sequence[str], *, is_private: bool, takes_tokens: bool) -> tuple[str, ...]:
    """`is_private`: nobody else can listen, since the connection is encrypted or does not leave the machine. `takes_tokens`: it is known whose."""
    if not is_private:
        return ()
    return tuple(each for each in enabled if takes_tokens or each != BY_OAUTH)
