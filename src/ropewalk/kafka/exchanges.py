"""What a client and this node say to each other in one login, by each mechanism.

What a reader could get wrong
    Whatever is wrong is `AuthenticationFailed`, whose text is for the log. The caller says the same to every client.
    A name that nobody has is led on to where a wrong password would fail, by the same work (`broker/passwords.py`).
"""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.ports import Rng
from ropewalk.broker.bearers import Bearers
from ropewalk.broker.passwords import PasswordProof, Passwords
from ropewalk.security.identity import BY_OAUTH, Identity
from ropewalk.security.oauthbearer import REFUSAL, parse_oauthbearer
from ropewalk.security.plain import parse_plain
from ropewalk.security.scram import BY_NAME, Mechanism, ScramConversation

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

    def __init__(self, passwords: Passwords, *, rng: Rng) -> None:
        self._passwords = passwords
        self._rng = rng

    def begin(self, mechanism: str, bearers: Bearers | None) -> Exchange:
        """`bearers` are whose tokens count where the client comes; without any none was offered."""
        if mechanism == BY_OAUTH:
            assert bearers is not None, "it was offered"
            return _Bearer(bearers)
        if mechanism == PLAIN:
            return _Plain(self._passwords)
        nonce = self._rng.randbytes(_NONCE_BYTES).hex()
        return _Scram(self._passwords, BY_NAME[mechanism], nonce)


class _Scram:
    def __init__(self, passwords: Passwords, mechanism: Mechanism, nonce: str) -> None:
        self._users = passwords.users
        self._mechanism = mechanism
        self._conversation = ScramConversation(mechanism, nonce, lambda name: passwords.find(mechanism, name))
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
        return Said(answer, PasswordProof(self._users, name, mechanism, credential, mechanism.sasl_name))


class _Plain:
    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords
        self.name: str | None = None

    async def next(self, message: bytes) -> Said:
        name, password = parse_plain(message)
        self.name = name
        return Said(b"", await self._passwords.prove(name, password, PLAIN))


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
