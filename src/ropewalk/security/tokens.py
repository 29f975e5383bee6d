"""Tokens of the cluster's own: signed for a user, short-lived, and checked by every node without asking anybody.

A token is a JWT by HMAC-SHA-256. It names the cluster, the user, when it was issued and when it ends, and it carries a mark of what the user
logs in with: once that is another, or gone, the mark does not fit any more, and neither does the token. So nothing is kept of a token.

A session token is the same for requests that are signed with an access key, as SQS's are: it comes with a secret that follows from it and from
the key that signed it, and is not shown with requests. A bearer token proves nothing there, and a session token nothing anywhere else: it stands in
addresses that are signed for others to use.

Invariants
    A key signs for a while that follows from the records alone: from when it was made until it is too old, or until shortly after the next was.
    A token counts only if it was issued while its key signed, and for no longer than tokens may last. A key that somebody has stolen is
    therefore worth nothing once that time is over, whether or not it has been removed.
    The algorithm is the one there is. A token that names another is no token of ours.

What a reader could get wrong
    A new key signs when other nodes have had time to hear of it. Before that the former does, if there is one that still may.
    Users who are known by certificates or by an authority of OAuth alone have nothing that a token could be bound to, so there is none for them.
"""

import hmac
from base64 import b32encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, NoReturn

import msgspec
from msgspec import UNSET, Struct

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.limits import (
    TOKEN_CLOCK_SKEW_MS,
    TOKEN_KEY_SETTLES_MS,
    TOKEN_KEY_SIGNS_MS,
    TOKEN_LIFETIME_MS_MAX,
)
from ropewalk.security.bearer import Token
from ropewalk.security.scram import Mechanism, ScramCredential

KEY_BYTES: Final = 32
KEY_ID_BYTES: Final = 8
SESSION_KEYS: Final = "ASRW"
"""How the ids of access keys begin that belong to a session token."""

_ALGORITHM: Final = "HS256"
_BEARER: Final = "JWT"
_SESSION: Final = "session"
_ACCESS_KEY_BYTES: Final = 10
_SECRET_BYTES: Final = 30
"""As many as make 40 characters, as Amazon's have."""
_SECRET_INFO: Final = b"secret of a session "
_ISSUERS: Final = "ropewalk:"
_OURS: Final = "a token of the cluster's own"
_MARK_BYTES: Final = 16


class TokenEnded(AuthenticationFailed):
    """It was good until its time was over."""


class TokenKey(Struct, frozen=True):
    key_id: str
    key: bytes
    created_at_ms: int
    signs_until_ms: int
    """Nothing that is issued from here on is signed with it."""

    def __repr__(self) -> str:
        return f"<TokenKey {self.key_id}>"

    @property
    def counts_until_ms(self) -> int:
        """When the last token that it can have signed has ended."""
        return self.signs_until_ms + TOKEN_LIFETIME_MS_MAX + TOKEN_CLOCK_SKEW_MS


class Issued(Struct, frozen=True):
    user: str
    token: str
    issued_at_ms: int
    ends_at_ms: int
    access_key: str = ""
    secret: str = ""
    """Of a session token; else empty."""

    def __repr__(self) -> str:
        return f"<Issued for {self.user!r}>"


class _Claims(Struct, frozen=True):
    """In the order in which they are written."""

    iss: str
    sub: str
    iat: float
    exp: float
    mark: str


def issuer_of(cluster_id: str) -> str:
    return _ISSUERS + cluster_id


def is_ours(issuer: object) -> bool:
    """Whether a token says that a cluster like this one has issued it: then no authority is asked about it."""
    return isinstance(issuer, str) and issuer.startswith(_ISSUERS)


def keys_of(made: Iterable[tuple[str, bytes, int]]) -> Sequence[TokenKey]:
    """Each by its id, its bytes and when it was made, in the order of their making."""
    ordered = sorted(made, key=lambda each: (each[2], each[0]))
    keys: list[TokenKey] = []
    for index, (key_id, key, created_at_ms) in enumerate(ordered):
        until_ms = created_at_ms + TOKEN_KEY_SIGNS_MS
        if index + 1 < len(ordered):
            until_ms = min(until_ms, ordered[index + 1][2] + TOKEN_KEY_SETTLES_MS)
        keys.append(TokenKey(key_id, key, created_at_ms, until_ms))
    return tuple(keys)


def signing_key(keys: Sequence[TokenKey], now_ms: int) -> TokenKey | None:
    """None where none may sign any more."""
    able = [each for each in keys if each.created_at_ms - TOKEN_CLOCK_SKEW_MS <= now_ms < each.signs_until_ms]
    settled = [each for each in able if each.created_at_ms + TOKEN_KEY_SETTLES_MS <= now_ms]
    return settled[-1] if settled else able[0] if able else None


def issue(
    key: TokenKey,
    *,
    cluster_id: str,
    user: str,
    credentials: Mapping[Mechanism, ScramCredential],
    now_ms: int,
    lifetime_ms: int,
    is_session: bool = False,
) -> Issued:
    assert credentials, "a token is bound to what its user logs in with"
    assert 0 < lifetime_ms <= TOKEN_LIFETIME_MS_MAX, "tokens end in time"
    ends_at_ms = now_ms + lifetime_ms
    claims = _Claims(
        issuer_of(cluster_id), user, now_ms / 1000, ends_at_ms / 1000, _mark(key, user, credentials)
    )
    header = {"alg": _ALGORITHM, "kid": key.key_id, "typ": _SESSION if is_session else _BEARER}
    signed = b".".join(_encoded(msgspec.json.encode(part)) for part in (header, claims))
    token = (signed + b"." + _encoded(_signature(key, signed))).decode()
    if not is_session:
        return Issued(user, token, now_ms, ends_at_ms)
    return Issued(user, token, now_ms, ends_at_ms, access_key_of(token), secret_of(key, token))


def access_key_of(token: str) -> str:
    """The id of the access key that belongs to a session token; anybody who sees the token can tell it."""
    return SESSION_KEYS + b32encode(sha256(token.encode()).digest()[:_ACCESS_KEY_BYTES]).decode()


def secret_of(key: TokenKey, token: str) -> str:
    """What requests of a session are signed with: HKDF's expansion (RFC 5869) of the key that signed its token."""
    expanded = hmac.digest(key.key, _SECRET_INFO + token.encode() + b"\x01", "sha256")
    return _encoded(expanded[:_SECRET_BYTES]).decode()


class Verified(Struct, frozen=True):
    user: str
    ends_at_ms: int
    key: TokenKey
    mark: str

    def still_counts(
        self, keys: Mapping[str, TokenKey], credentials: Mapping[Mechanism, ScramCredential]
    ) -> bool:
        """By the keys and the user's credentials of the day, its end apart."""
        key = keys.get(self.key.key_id)
        if key is None or key.key != self.key.key or not credentials:
            return False
        return hmac.compare_digest(_mark(key, self.user, credentials), self.mark)


def verify(
    token: Token,
    *,
    cluster_id: str,
    keys: Mapping[str, TokenKey],
    credentials_of: Callable[[str], Mapping[Mechanism, ScramCredential]],
    now_ms: int,
    is_session: bool = False,
) -> Verified:
    """Raises `AuthenticationFailed`; `TokenEnded` where nothing else is wrong. `credentials_of` is asked for whoever the token names, once the signature is known to be right."""
    header = token.header
    if (header.alg, header.typ, header.crit) != (_ALGORITHM, _SESSION if is_session else _BEARER, UNSET):
        _refuse("it is not made as this cluster makes its own")
    key = keys.get(header.kid or "")
    if key is None:
        _refuse("its key is not known, or no more")
    if not hmac.compare_digest(_signature(key, token.signed), token.signature):
        _refuse("its signature is not right")
    try:
        claims = msgspec.convert(token.claims, _Claims)
    except msgspec.ValidationError:
        _refuse("it does not say what this cluster's own say")
    if claims.iss != issuer_of(cluster_id):
        _refuse("another cluster has issued it")
    issued_at_ms, ends_at_ms = round(claims.iat * 1000), round(claims.exp * 1000)
    if not key.created_at_ms - TOKEN_CLOCK_SKEW_MS <= issued_at_ms < key.signs_until_ms + TOKEN_CLOCK_SKEW_MS:
        _refuse("it was issued when its key did not sign")
    if ends_at_ms - issued_at_ms > TOKEN_LIFETIME_MS_MAX:
        _refuse("it lasts longer than tokens may")
    if issued_at_ms > now_ms + TOKEN_CLOCK_SKEW_MS:
        _refuse(f"it was issued {(issued_at_ms - now_ms) // 1000} s ahead of this node's clock")
    verified = Verified(claims.sub, ends_at_ms, key, claims.mark)
    if not verified.still_counts(keys, credentials_of(claims.sub)):
        _refuse("its user's credential was changed or removed since")
    if now_ms >= ends_at_ms:
        raise TokenEnded(f"{_OURS}: it ended {(now_ms - ends_at_ms) // 1000} s ago")
    return verified


def _mark(key: TokenKey, user: str, credentials: Mapping[Mechanism, ScramCredential]) -> str:
    """Of all that a user logs in with. It is made under the key, so that it tells nobody anything."""
    held = [
        (int(mechanism), each.iterations, each.salt, each.stored_key, each.server_key)
        for mechanism, each in sorted(credentials.items())
    ]
    digest = hmac.digest(key.key, b"mark" + msgspec.msgpack.encode((user, held)), "sha256")
    return _encoded(digest[:_MARK_BYTES]).decode()


def _signature(key: TokenKey, signed: bytes) -> bytes:
    return hmac.digest(key.key, signed, "sha256")


def _encoded(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def _refuse(why: str) -> NoReturn:
    raise AuthenticationFailed(f"{_OURS}: {why}")
