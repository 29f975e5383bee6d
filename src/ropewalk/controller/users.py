"""Setting and removing what users log in with, by the rules of KIP-554.

Behaviour worth knowing
    All that is valid in a request is done together; what is not is refused user by user, and the others do not mind.
    A user that a request names twice, by whatever mechanism, keeps what it had.
    The clear password never comes here: a client sends it salted, and what is kept is made from that.
    Two names are nobody's to have: whoever said none is called by the one, and nodes that ask on their own account by the other. And `*`
    would stand for everybody in a rule.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.errors import (
    DuplicateUser,
    NotInForce,
    PolicyViolation,
    RopewalkError,
    UnacceptableCredential,
    UnknownUser,
    UnsupportedMechanism,
)
from ropewalk.base.levels import LEVEL_FIRST, USERS_LEVEL
from ropewalk.base.limits import USERS_CHANGED_MAX, USERS_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    DecoyKeySet,
    MetadataRecord,
    ScramCredentialRemoved,
    ScramCredentialSet,
)
from ropewalk.security.names import refusal_of
from ropewalk.security.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_BYTES_MAX,
    SALT_BYTES_MIN,
    Mechanism,
    credential_of,
)


class Removal(Struct, frozen=True):
    user: str
    mechanism: int


class Upsertion(Struct, frozen=True):
    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"Upsertion({self.user!r}, {self.mechanism}, …)"


class Outcome(Struct, frozen=True):
    records: list[MetadataRecord]
    refusals: dict[str, RopewalkError | None]
    """Of every user that was named, in that order; None: it is done."""


def decide_alter_users(image: Image, changes: Sequence[Removal | Upsertion], *, decoy_key: bytes) -> Outcome:
    """`decoy_key` has been drawn for this request, and is used where the cluster has none."""
    named = Counter(change.user for change in changes)
    refusals: dict[str, RopewalkError | None] = dict.fromkeys(named)
    records: list[MetadataRecord] = []
    users = image.users
    user_count = len(users)
    for change in changes:
        try:
            _check(image, change, named)
            if isinstance(change, Removal):
                user_count -= len(users.of(change.user)) == 1
                records.append(ScramCredentialRemoved(change.user, change.mechanism))
            else:
                if change.user not in users and user_count >= USERS_MAX:
                    raise PolicyViolation(f"there are {user_count} users, at most {USERS_MAX} are kept")
                user_count += change.user not in users
                records.append(_credential_set(change))
        except RopewalkError as error:
            refusals[change.user] = error
    if not users.decoy_key and any(isinstance(record, ScramCredentialSet) for record in records):
        records.insert(0, DecoyKeySet(decoy_key))
    return Outcome(records, refusals)


def _check(image: Image, change: Removal | Upsertion, named: Counter[str]) -> None:
    if image.level < USERS_LEVEL:
        raise NotInForce(
            f"users came with level {USERS_LEVEL}, and level {max(image.level, LEVEL_FIRST)} is in force; "
            "`ropewalk cluster upgrade status` says what holds it back"
        )
    if named.total() > USERS_CHANGED_MAX:
        raise PolicyViolation(
            f"the request changes {named.total()} credentials, at most {USERS_CHANGED_MAX} are changed at once"
        )
    if named[change.user] > 1:
        raise DuplicateUser(f"the request names user {change.user!r:.200} more than once")
    if not change.user:
        raise UnacceptableCredential("the name of a user is empty")
    if change.mechanism not in (1, 2):
        raise UnsupportedMechanism(
            f"there is no SCRAM mechanism {change.mechanism}, only 1 (SCRAM-SHA-256) and 2 (SCRAM-SHA-512)"
        )
    mechanism = Mechanism(change.mechanism)
    if isinstance(change, Upsertion):
        _check_name(change.user)
        _check_credential(mechanism, change)
    elif mechanism not in image.users.of(change.user):
        raise UnknownUser(f"user {change.user!r:.200} has no credential for {mechanism.sasl_name}")


def _check_name(name: str) -> None:
    refusal = refusal_of(name)
    if refusal is not None:
        raise UnacceptableCredential(refusal)


def _check_credential(mechanism: Mechanism, change: Upsertion) -> None:
    if not ITERATIONS_MIN <= change.iterations <= ITERATIONS_MAX:
        raise UnacceptableCredential(
            f"{change.iterations} iterations, {ITERATIONS_MIN} to {ITERATIONS_MAX} are allowed"
        )
    if len(change.salt) < SALT_BYTES_MIN:
        raise UnacceptableCredential(
            f"a salt of {len(change.salt)} bytes, at least {SALT_BYTES_MIN} are needed"
        )
    if len(change.salt) > SALT_BYTES_MAX:
        raise UnacceptableCredential(f"a salt of {len(change.salt)} bytes, at most {SALT_BYTES_MAX} are kept")
    if len(change.salted_password) != mechanism.digest_bytes:
        raise UnacceptableCredential(
            f"a salted password of {len(change.salted_password)} bytes, "
            f"{mechanism.sasl_name} makes {mechanism.digest_bytes}"
        )


def _credential_set(change: Upsertion) -> ScramCredentialSet:
    made = credential_of(Mechanism(change.mechanism), change.salted_password, change.salt, change.iterations)
    return ScramCredentialSet(
        change.user, change.mechanism, made.iterations, made.salt, made.stored_key, made.server_key
    )
