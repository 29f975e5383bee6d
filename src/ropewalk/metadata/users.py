"""Users as facts of the cluster: of each what proves a password, by mechanism. A password itself is nowhere.

What a reader could get wrong
    Credentials are replaced, never changed in place: whoever logged in keeps the one it proved, and compares.
    A user is there while it has a credential.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from ropewalk.metadata.records import DecoyKeySet, ScramCredentialRemoved, ScramCredentialSet
from ropewalk.security.scram import ITERATIONS_OURS, SALT_BYTES_OURS, Mechanism, ScramCredential

UserFact: TypeAlias = ScramCredentialSet | ScramCredentialRemoved | DecoyKeySet


class Shape(Struct, frozen=True, order=True):
    """What a stranger sees of a credential."""

    iterations: int
    salt_bytes: int


_OURS: Final = Shape(ITERATIONS_OURS, SALT_BYTES_OURS)
_NOBODY: Final[Mapping[Mechanism, ScramCredential]] = {}


class UserIndex:
    """The users of an image. It lives as long as the image does, whatever that becomes."""

    __slots__ = ("_by_name", "_shapes", "decoy_key", "version")

    def __init__(self) -> None:
        self.version: int = 0
        """Another after every change, so that whoever keeps what follows from it can tell."""
        self.clear()

    def clear(self) -> None:
        self.version += 1
        self.decoy_key: bytes = b""
        """Empty until there was a first user."""
        self._by_name: dict[str, dict[Mechanism, ScramCredential]] = {}
        self._shapes: dict[Mechanism, Counter[Shape]] = {mechanism: Counter() for mechanism in Mechanism}

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[str]:
        """The names, sorted."""
        return iter(sorted(self._by_name))

    def of(self, name: str) -> Mapping[Mechanism, ScramCredential]:
        """Empty where there is no such user."""
        return self._by_name.get(name, _NOBODY)

    def usual_shape(self, mechanism: Mechanism) -> Shape:
        """That of most credentials; of ours where there are none."""
        shapes = self._shapes[mechanism]
        return max(shapes, key=lambda shape: (shapes[shape], shape)) if shapes else _OURS

    @property
    def usual_mechanism(self) -> Mechanism:
        """By which most users can log in; the stronger one where there are none."""
        return max(Mechanism, key=lambda mechanism: (self._shapes[mechanism].total(), mechanism))

    def apply(self, record: UserFact) -> None:
        self.version += 1
        match record:
            case DecoyKeySet(key=key):
                self.decoy_key = key
            case ScramCredentialSet(user=user):
                mechanism = Mechanism(record.mechanism)
                self._forget(user, mechanism)
                credential = ScramCredential(
                    record.iterations, record.salt, record.stored_key, record.server_key
                )
                held = {**self.of(user), mechanism: credential}
                self._by_name[user] = {each: held[each] for each in sorted(held)}
                self._shapes[mechanism][_shape(credential)] += 1
            case ScramCredentialRemoved(user=user):
                mechanism = Mechanism(record.mechanism)
                self._forget(user, mechanism)
                rest = {each: held for each, held in self.of(user).items() if each is not mechanism}
                self._by_name.pop(user, None)
                if rest:
                    self._by_name[user] = rest
            case _:
                assert_never(record)

    def facts(self) -> Iterator[UserFact]:
        """The fewest records that rebuild this index."""
        if self.decoy_key:
            yield DecoyKeySet(self.decoy_key)
        for name in self:
            for mechanism, credential in self._by_name[name].items():
                yield ScramCredentialSet(
                    name,
                    mechanism,
                    credential.iterations,
                    credential.salt,
                    credential.stored_key,
                    credential.server_key,
                )

    def _forget(self, user: str, mechanism: Mechanism) -> None:
        credential = self.of(user).get(mechanism)
        if credential is not None:
            shapes = self._shapes[mechanism]
            shapes[_shape(credential)] -= 1
            shapes += Counter()  # what is 0 goes


def _shape(credential: ScramCredential) -> Shape:
    return Shape(credential.iterations, len(credential.salt))
