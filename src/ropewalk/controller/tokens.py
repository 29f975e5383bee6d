"""The keys that sign the cluster's own tokens: when the next is made, and when a former one is forgotten.

Behaviour worth knowing
    A key is made when the first token is wanted, when a token is wanted and no key may sign any more, and when an administrator says so.
    A former key stays for as long as a token that it signed may last. An administrator who says that it is known to others has it forgotten at
    once, with every token it signed.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.errors import InvalidRequest, NotInForce, PolicyViolation, UnknownUser
from ropewalk.base.levels import LEVEL_FIRST, TOKENS_LEVEL
from ropewalk.base.limits import TOKEN_KEYS_MAX, TOKEN_LIFETIME_MS_MAX
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import MetadataRecord, TokenKeyAdded, TokenKeyRemoved
from ropewalk.security.tokens import Issued, TokenKey, issue, keys_of, signing_key


class NewKey(Struct, frozen=True):
    """Drawn for this request, and used where a key is made."""

    key_id: str
    key: bytes

    def __repr__(self) -> str:
        return f"<NewKey {self.key_id}>"


class IssuedToken(Struct, frozen=True):
    records: Sequence[MetadataRecord]
    issued: Issued


def decide_issue(
    image: Image, user: str, *, lifetime_ms: int, new: NewKey, now_ms: int, is_session: bool = False
) -> IssuedToken:
    _check_level(image)
    if not 0 < lifetime_ms <= TOKEN_LIFETIME_MS_MAX:
        raise InvalidRequest(f"a token of {lifetime_ms} ms, 1 to {TOKEN_LIFETIME_MS_MAX} are possible")
    credentials = image.users.of(user)
    if not credentials:
        raise UnknownUser(f"there is no user {user!r:.200} with a password, to which a token could be bound")
    assert image.cluster_id is not None, "the cluster has been created"
    keys, records = image.token_keys.keys, list[MetadataRecord]()
    key = signing_key(keys, now_ms)
    if key is None:
        records = _with_another(image, new, now_ms)
        key = _after(keys, new, now_ms)
    issued = issue(
        key,
        cluster_id=image.cluster_id,
        user=user,
        credentials=credentials,
        now_ms=now_ms,
        lifetime_ms=lifetime_ms,
        is_session=is_session,
    )
    return IssuedToken(records, issued)


def decide_replace_key(
    image: Image, *, new: NewKey, is_known_to_others: bool, now_ms: int
) -> Sequence[MetadataRecord]:
    """`is_known_to_others`: no former key counts from here on, and so none of the tokens that there are."""
    _check_level(image)
    if is_known_to_others:
        former = (TokenKeyRemoved(each.key_id) for each in image.token_keys.keys)
        return [*former, TokenKeyAdded(new.key_id, new.key, now_ms)]
    return _with_another(image, new, now_ms)


def _with_another(image: Image, new: NewKey, now_ms: int) -> list[MetadataRecord]:
    keys = image.token_keys.keys
    ended = [each for each in keys if each.counts_until_ms <= now_ms]
    if len(keys) - len(ended) >= TOKEN_KEYS_MAX:
        raise PolicyViolation(
            f"tokens of {len(keys) - len(ended)} keys are believed, at most {TOKEN_KEYS_MAX} are kept until their tokens have ended"
        )
    return [
        *(TokenKeyRemoved(each.key_id) for each in ended),
        TokenKeyAdded(new.key_id, new.key, now_ms),
    ]


def _after(keys: Sequence[TokenKey], new: NewKey, now_ms: int) -> TokenKey:
    """The new key as it will be."""
    made = [(each.key_id, each.key, each.created_at_ms) for each in keys]
    return next(each for each in keys_of([*made, (new.key_id, new.key, now_ms)]) if each.key_id == new.key_id)


def _check_level(image: Image) -> None:
    if image.level < TOKENS_LEVEL:
        raise NotInForce(
            f"tokens of the cluster's own came with level {TOKENS_LEVEL}, and level {max(image.level, LEVEL_FIRST)} is in force; "
            "`ropewalk cluster upgrade status` says what holds it back"
        )
