"""Tokens that an authority has signed (JWT, RFC 7519; JWS, RFC 7515): which are believed, and whom they name.

A core: it is given keys and the time, and fetches nothing.

Invariants
    Which algorithms count follows from the key, never from the token: a key of RSA proves nothing by HMAC, whatever the token says. There is
    no way to have a token believed that nobody signed.
    A token counts for the issuer and for an audience that are configured, and neither can be left open.
    Nothing that a token names (`jku`, `x5u`, `jwk`, `x5c`) is looked at.

What a reader could get wrong
    Skew is allowed for what lies ahead (`nbf`, `iat`), since another clock may be fast. A token whose `exp` has come is over, here and now:
    clients ask for another long before.
    Every failure is `AuthenticationFailed`, whose text is for the log. It has no words of the token's in it, or strangers would write the log.
    `joserfc` takes a while to import, which no start of a node without OAuth should pay.
"""

import re
import warnings
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from msgspec import UNSET, Struct

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.limits import (
    BEARER_GROUPS_MAX,
    BEARER_TOKEN_BYTES_MAX,
    JWKS_KEYS_MAX,
    RSA_KEY_BITS_MAX,
    RSA_KEY_BITS_MIN,
)
from ropewalk.security.names import has_controls, refusal_of

if TYPE_CHECKING:
    from joserfc.jwk import Key

_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]+")
_TYPES: Final = (None, "jwt", "at+jwt", "application/at+jwt")
_PUBLIC: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
"""What a key of each type is made of, as far as it is public."""

_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_BY_CURVE: Final = {
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("Ed25519", "EdDSA"),
}
_SECONDS_MAX: Final = 1 << 40
"""Tens of thousands of years: what is beyond is no time."""


class Expected(Struct, frozen=True, kw_only=True):
    """What a token must say to be believed."""

    issuer: str
    audiences: tuple[str, ...]
    """One of which the token must be for."""
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    groups_claim: str = "groups"
    skew_ms: int = 30_000


class Header(Struct, frozen=True):
    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: object = UNSET


class Token(Struct, frozen=True):
    """One that can be read. Nothing that it says is known to be true."""

    header: Header
    claims: Mapping[str, object]
    signed: bytes
    signature: bytes
    text: str

    def __repr__(self) -> str:
        return "<Token>"


class Claimed(Struct, frozen=True):
    """What a token that is believed says."""

    subject: str
    groups: tuple[str, ...]
    ends_at_ms: int


class VerifyingKey(Struct, frozen=True):
    """A public key, with the algorithms by which it proves anything."""

    key: "Key"
    algorithms: tuple[str, ...]
    thumbprint: str
    """Of the key itself, whatever it is called."""


class KeySet(Struct, frozen=True):
    """The public keys of an authority."""

    by_id: Mapping[str | None, tuple[VerifyingKey, ...]]
    ignored: tuple[str, ...] = ()
    """Why some keys are not used."""

    @property
    def thumbprints(self) -> frozenset[str]:
        return frozenset(each.thumbprint for keys in self.by_id.values() for each in keys)

    def of(self, key_id: str | None) -> tuple[VerifyingKey, ...]:
        """Those that a token without a name for its key may mean are there where there is but one."""
        if key_id is not None:
            return self.by_id.get(key_id, ())
        keys = [each for keys in self.by_id.values() for each in keys]
        return tuple(keys) if len(keys) == 1 else ()


def parse_token(text: str) -> Token:
    """Raises `AuthenticationFailed`."""
    if len(text) > BEARER_TOKEN_BYTES_MAX:
        _refuse(f"a token of {len(text)} bytes, at most {BEARER_TOKEN_BYTES_MAX} are read")
    segments = text.split(".")
    if len(segments) != 3 or not all(_SEGMENT.fullmatch(segment) for segment in segments):
        _refuse("what came is not a signed token: three parts in base64url, with dots between them")
    try:
        header, payload, signature = (_decoded(segment) for segment in segments)
        return Token(
            msgspec.json.decode(header, type=Header),
            msgspec.json.decode(payload, type=dict[str, object]),
            text.rpartition(".")[0].encode(),
            signature,
            text,
        )
    except (
        ValueError,
        RecursionError,
    ):  # msgspec's errors are ValueErrors, those of base64 and of UTF-8 as well
        _refuse("the parts of the token are not what a signed token has")


def parse_key_set(data: bytes) -> KeySet:
    """Of a JWKS (RFC 7517). Raises `ValueError` for what is none, or has no key that can be used."""
    try:
        document = msgspec.json.decode(data, type=_Document)
    except RecursionError:
        raise ValueError("it is no JWKS: too deep") from None
    if len(document.keys) > JWKS_KEYS_MAX:
        raise ValueError(f"it has {len(document.keys)} keys, at most {JWKS_KEYS_MAX} are used")
    found: dict[str | None, tuple[VerifyingKey, ...]] = {}
    ignored: list[str] = []
    for number, each in enumerate(document.keys, 1):
        key_id = each.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            ignored.append(f"key {number} has a kid that is no text")
            continue
        try:
            key = _verifying_key(each)
        except ValueError as error:
            ignored.append(f"key {number} ({key_id!r:.100}): {error}")
            continue
        found[key_id] = (*found.get(key_id, ()), key)
    if not found:
        raise ValueError(f"it has no key that can be used{': ' if ignored else ''}{'; '.join(ignored)}")
    return KeySet(found, tuple(ignored))


def verify(token: Token, keys: KeySet, expected: Expected, now_ms: int) -> tuple[Claimed, VerifyingKey]:
    """What the token says, once all of it is believed, and the key that proved it. Raises `AuthenticationFailed`."""
    key = _proving_key(token, keys)
    return _claimed(token.claims, expected, now_ms), key


def knows(keys: KeySet, token: Token) -> bool:
    """Whether the key that the token names is among these, so that asking for others would be in vain."""
    return bool(keys.of(token.header.kid))


# Keys


class _Document(Struct):
    keys: list[dict[str, Any]]


def _verifying_key(jwk: dict[str, Any]) -> VerifyingKey:
    """Raises `ValueError`."""
    from joserfc.errors import JoseError
    from joserfc.jwk import thumbprint

    kind = jwk.get("kty")
    if not isinstance(kind, str) or kind not in _PUBLIC:
        raise ValueError(f"its type is {kind!r:.50}, and RSA, EC and OKP can prove something in public")
    if jwk.get("use", "sig") != "sig" or "verify" not in jwk.get("key_ops", ("verify",)):
        raise ValueError("it is not for signatures")
    key: Key
    try:
        with _unwarned():
            key, public = _imported(kind, jwk)
    except (JoseError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"it cannot be read: {type(error).__name__}") from None
    algorithms = _algorithms(key)
    named = jwk.get("alg")
    if named is not None:
        algorithms = tuple(each for each in algorithms if each == named)
    if not algorithms:
        raise ValueError("no algorithm that is believed goes with it")
    return VerifyingKey(key, algorithms, thumbprint(public))


def _imported(kind: str, jwk: dict[str, Any]) -> "tuple[Key, dict[str, Any]]":
    """With nothing in it but what is public."""
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    public = {name: jwk[name] for name in ("kty", *_PUBLIC[kind])}
    if kind == "RSA":
        return RSAKey.import_key(public), public
    return (ECKey.import_key(public) if kind == "EC" else OKPKey.import_key(public)), public


def _algorithms(key: "Key") -> tuple[str, ...]:
    """Raises `ValueError` for a key that is too small or too large."""
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    if isinstance(key, ECKey | OKPKey):
        return _BY_CURVE.get(key.curve_name, ())
    assert isinstance(key, RSAKey), "a key is of one of three types"
    bits = key.raw_value.key_size
    if not RSA_KEY_BITS_MIN <= bits <= RSA_KEY_BITS_MAX:
        raise ValueError(f"it has {bits} bits, {RSA_KEY_BITS_MIN} to {RSA_KEY_BITS_MAX} are believed")
    return _RSA


def _proving_key(token: Token, keys: KeySet) -> VerifyingKey:
    header = token.header
    if header.crit is not UNSET:
        _refuse("the token says that something must be understood (`crit`), which nobody here does")
    if (None if header.typ is None else header.typ.lower()) not in _TYPES:
        _refuse("the token is of a type (`typ`) that is no access token")
    known = keys.of(header.kid)
    if not known:
        _refuse("the token is signed with a key that the issuer does not show")
    able = [key for key in known if header.alg in key.algorithms]
    if not able:
        _refuse("the token names an algorithm that does not go with its key")
    proving = next((key for key in able if _proves(key, token)), None)
    if proving is None:
        _refuse("the signature of the token is not right")
    return proving


def _proves(key: VerifyingKey, token: Token) -> bool:
    from joserfc.errors import JoseError
    from joserfc.jws import deserialize_compact

    try:
        with _unwarned():
            deserialize_compact(token.text, key.key, registry=_registry(key.algorithms))
    except (JoseError, ValueError, TypeError, RecursionError):
        return False
    return True


@contextmanager
def _unwarned() -> Iterator[None]:
    """`joserfc` warns of small keys, which are refused here, and of the former name of Ed25519, which most authorities still use."""
    from joserfc.errors import SecurityWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        yield


def _registry(algorithms: tuple[str, ...]) -> Any:
    """What `joserfc` is to allow. Sizes have been looked at before, and unknown words in a header mean nothing."""
    from joserfc.jws import JWSRegistry

    registry = JWSRegistry(algorithms=algorithms, strict_check_header=False)
    registry.max_header_length = registry.max_payload_length = BEARER_TOKEN_BYTES_MAX
    return registry


# Claims


def _claimed(claims: Mapping[str, object], expected: Expected, now_ms: int) -> Claimed:
    if claims.get("iss") != expected.issuer:
        _refuse(f"the issuer of the token is not {expected.issuer}")
    if not set(_texts(claims.get("aud"), "aud")) & set(expected.audiences):
        _refuse(f"the token is for another audience than {' or '.join(expected.audiences)}")
    ends_at_ms = _time_ms(claims, "exp")
    issued_at_ms = _time_ms(claims, "iat")
    if now_ms >= ends_at_ms:
        _refuse(f"the token ended {_ago(now_ms - ends_at_ms)} ago")
    if issued_at_ms > now_ms + expected.skew_ms:
        _refuse(f"the token was issued {_ago(issued_at_ms - now_ms)} ahead of this node's clock")
    if claims.get("nbf") is not None:
        begins_at_ms = _time_ms(claims, "nbf")
        if begins_at_ms > now_ms + expected.skew_ms:
            _refuse(f"the token begins {_ago(begins_at_ms - now_ms)} from now")
    tuple(
        _texts(claims.get(expected.scope_claim), expected.scope_claim)
    )  # whatever it allows, it is no nonsense
    return Claimed(_subject(claims, expected), _groups(claims, expected), ends_at_ms)


def _subject(claims: Mapping[str, object], expected: Expected) -> str:
    subject = claims.get(expected.subject_claim)
    if not isinstance(subject, str):
        _refuse(f"the token has no claim {expected.subject_claim} that is a text")
    if refusal_of(subject) is not None:
        _refuse(f"the claim {expected.subject_claim} is no name that a user may have")
    return subject


def _groups(claims: Mapping[str, object], expected: Expected) -> tuple[str, ...]:
    """Refused where they cannot be understood: a rule may deny something to one of them."""
    groups = tuple(dict.fromkeys(_texts(claims.get(expected.groups_claim), expected.groups_claim)))
    if len(groups) > BEARER_GROUPS_MAX:
        _refuse(f"the token names {len(groups)} groups, at most {BEARER_GROUPS_MAX} are looked at")
    if any(not group or len(group) > _GROUP_CHARACTERS_MAX for group in groups) or has_controls(groups):
        _refuse(f"the claim {expected.groups_claim} has a name that no group may have")
    return groups


_GROUP_CHARACTERS_MAX: Final = 255


def _texts(value: object, claim: str) -> Iterator[str]:
    """One or several."""
    if value is None:
        return
    if isinstance(value, str):
        yield value
        return
    if not isinstance(value, Sequence):
        _refuse(f"the claim {claim} is neither a text nor a list of texts")
    for each in value:
        if not isinstance(each, str):
            _refuse(f"the claim {claim} is neither a text nor a list of texts")
        yield each


def _time_ms(claims: Mapping[str, object], claim: str) -> int:
    value = claims.get(claim)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _SECONDS_MAX:
        _refuse(f"the token has no claim {claim} that is a time")
    return int(value * 1000)


def _ago(duration_ms: int) -> str:
    return f"{duration_ms // 1000} s"


def _decoded(segment: str) -> bytes:
    return urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


def _refuse(why: str) -> NoReturn:
    raise AuthenticationFailed(f"OAUTHBEARER: {why}")
