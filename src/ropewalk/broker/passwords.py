"""Names and passwords at any door, compared with what SCRAM keeps of them.

A door asks `Passwords.prove(name, password)`, and gets a proof or `AuthenticationFailed`, whose text is for the log and never for who came.

What a reader could get wrong
    A name that nobody has is led on to where a wrong password would fail, by the same work: the decoy is made for everybody.
    All doors of a node compare passwords in one line, so that guessing at one of them does not cost more than at another.
"""

from functools import cached_property

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.ports import Clock, Pool, Rng
from ropewalk.metadata.users import UserIndex
from ropewalk.security.decoys import DECOY_KEY_BYTES, decoy
from ropewalk.security.identity import Identity
from ropewalk.security.plain import PasswordChecks
from ropewalk.security.scram import Found, Mechanism, ScramCredential


class PasswordProof:
    """Who it is, and by what that was proved."""

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
        """Another once what was proved may be another, so that it is worth looking again."""
        return self._users.version

    def still_counts(self) -> bool:
        """Whether the user still logs in with what it proved."""
        return self._users.of(self._name).get(self._mechanism) == self._credential


class Passwords:
    """Of all doors of a node."""

    def __init__(self, users: UserIndex, *, rng: Rng, pool: Pool, clock: Clock) -> None:
        self.users = users
        self._rng = rng
        self._checks = PasswordChecks(pool, clock, rng)

    @cached_property
    def _own_key(self) -> bytes:
        """Of this process: while a cluster has no user there is none to be told from others."""
        return self._rng.randbytes(DECOY_KEY_BYTES)

    def find(self, mechanism: Mechanism, name: str) -> Found:
        """What a user holds, or what looks like it."""
        users = self.users
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

    async def prove(self, name: str, password: bytes, method: str) -> PasswordProof:
        """Raises `AuthenticationFailed`, or `Throttled` where too many others wait."""
        mechanism = self._mechanism_of(name)
        found = self.find(mechanism, name)
        is_right = await self._checks.proves(password, name, mechanism, found.credential)
        if found.is_decoy:
            raise AuthenticationFailed(f"{method}: there is no such user")
        if not is_right:
            raise AuthenticationFailed(f"{method}: the password is wrong")
        return PasswordProof(self.users, name, mechanism, found.credential, method)

    def _mechanism_of(self, name: str) -> Mechanism:
        """By which the password is compared: the strongest that the user has, and for nobody that of most."""
        held = self.users.of(name)
        return max(held) if held else self.users.usual_mechanism
