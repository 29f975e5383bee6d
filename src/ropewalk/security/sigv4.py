"""AWS Signature Version 4: who signed a request, verified from its headers or, of a presigned address, from its parameters.

What a reader could get wrong
    What is signed is the request as it was sent: the path is not decoded, and headers are those that the signature names. The host, the action
    and the date have to be among them, or somebody on the way could put in others.
    A session token is not looked at here: whoever has it has signed with the key's secret, which may follow from the token.
    A signature counts for fifteen minutes before and after its date, a presigned address for as long as it says. Nobody remembers
    signatures, so within that time a request can be repeated by whoever saw it.
"""

import hmac
from calendar import timegm
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest
from time import gmtime
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import SIGNING_KEYS_MAX

ALGORITHM: Final = "AWS4-HMAC-SHA256"
SKEW_MS_MAX: Final = 15 * 60_000
EXPIRES_S_MAX: Final = 604_800
"""A week: as long as a presigned address may count."""

_TERMINATOR: Final = "aws4_request"
_DATE: Final = "x-amz-date"
_TARGET: Final = "x-amz-target"
_SIGNATURE: Final = "Signature="
_SCOPE_PARTS: Final = 5
_DATE_CHARACTERS: Final = 16
_INNER_PAD: Final = bytes(each ^ 0x36 for each in range(256))
_OUTER_PAD: Final = bytes(each ^ 0x5C for each in range(256))
_DATES_MAX: Final = 256
"""Dates that are remembered: many requests are signed within one second."""

MISMATCH_TEXT: Final = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. "
    "Consult the service documentation for details."
)


class WhyRefused(Enum):
    MISSING = "missing"
    INCOMPLETE = "incomplete"
    UNKNOWN_KEY = "unknown key"
    MISMATCH = "mismatch"
    """Also of another time, day or service."""


class SignatureRefused(RopewalkError):
    def __init__(self, why: WhyRefused, text: str = "") -> None:
        super().__init__(text or why.value)
        self.why = why


class Claim(Struct, frozen=True):
    """Who a request says it is from."""

    access_key: str
    day: str = ""
    region: str = ""
    service: str = ""
    terminator: str = ""


class _Signed(Struct, frozen=True):
    """What a request says about its signature, wherever it says so."""

    claim: Claim
    headers: str
    """The names of those that are signed, as they stand."""
    signature: str
    date: str
    expires_s: int | None
    query: str
    """As it is signed."""


class SigningKey:
    """HMAC-SHA256 (RFC 2104) with a key whose blocks were hashed beforehand: they are the same for every request of a day."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = key.ljust(sha256().block_size, b"\0")  # a digest, so shorter than a block
        self._inner = sha256(block.translate(_INNER_PAD))
        self._outer = sha256(block.translate(_OUTER_PAD))

    def signature(self, text: bytes) -> str:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(text)
        outer.update(inner.digest())
        return outer.hexdigest()


class SigningKeys:
    """Keys derived of secrets, by access key, day and region: deriving takes longer than all the rest."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str, str, str], SigningKey] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, claim: Claim, secret: str) -> SigningKey:
        name = (claim.access_key, claim.day, claim.region, claim.service)
        key = self._keys.get(name)
        if key is None:
            if len(self._keys) >= SIGNING_KEYS_MAX:
                self._keys.clear()
            key = self._keys[name] = SigningKey(_derive(secret, claim))
        return key


def claimed(headers: Mapping[str, str], query: Mapping[str, str]) -> Claim | None:
    """Who a request says it is from, unverified; None where it does not say."""
    authorization = headers.get("authorization")
    if authorization is not None:
        _, found, rest = authorization.partition("Credential=")
        credential = rest.partition(",")[0] if found else ""
    else:
        credential = query.get("X-Amz-Credential") or query.get("AWSAccessKeyId") or ""
    return _claim(credential.strip()) if credential else None


def verify(
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    secret_of: Callable[[str], str | None],
    service: str,
    now_ms: int,
    signing_keys: SigningKeys,
) -> Claim:
    """`target` is path and query as they were sent; names of `headers` are in lower case. Raises `SignatureRefused`."""
    path, _, query = target.partition("?")
    signed = _in_headers(headers, query) if "authorization" in headers else _in_query(query)
    claim = signed.claim
    _check_scope(claim, signed.date, service)
    secret = secret_of(claim.access_key)
    if secret is None:
        raise SignatureRefused(WhyRefused.UNKNOWN_KEY)
    _check_time(signed, now_ms)
    names = signed.headers.split(";")
    _check_names(names, headers)
    lines = "".join([f"{name}:{_trimmed(headers.get(name, ''))}\n" for name in names])
    canonical = f"{method}\n{_canonical_path(path)}\n{signed.query}\n{lines}\n{signed.headers}\n{sha256(body).hexdigest()}"
    digest = sha256(canonical.encode("latin-1", "replace")).hexdigest()
    scope = f"{claim.day}/{claim.region}/{claim.service}/{_TERMINATOR}"
    to_sign = f"{ALGORITHM}\n{signed.date}\n{scope}\n{digest}"
    expected = signing_keys.get(claim, secret).signature(to_sign.encode())
    if not compare_digest(expected.encode(), signed.signature.encode()):
        raise SignatureRefused(WhyRefused.MISMATCH, MISMATCH_TEXT)
    return claim


def _in_headers(headers: Mapping[str, str], query: str) -> _Signed:
    authorization = headers["authorization"]
    said, found, signature = authorization.rpartition(_SIGNATURE)
    if not found or "," in signature:
        said, signature = authorization, ""
    claim, names, in_front = _said(said)
    signature = signature.strip() or in_front
    if not (claim and signature and names):
        name = "SignedHeaders" if signature else "Signature"
        text = f"Authorization header requires '{name if claim else 'Credential'}' parameter. Authorization={authorization[:200]}"
        raise SignatureRefused(WhyRefused.INCOMPLETE, text)
    date = headers.get(_DATE)
    if date is None:
        text = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
        raise SignatureRefused(WhyRefused.INCOMPLETE, text)
    return _Signed(claim, names, signature, date, None, _canonical_query(query, without="") if query else "")


@lru_cache(maxsize=SIGNING_KEYS_MAX)
def _said(authorization: str) -> tuple[Claim | None, str, str]:
    """Claim, names of signed headers, and the signature where it does not stand last.

    Remembered: what stands before the signature is the same for all that a client signs in a day.
    """
    algorithm, _, rest = authorization.partition(" ")
    if algorithm != ALGORITHM:
        text = f"Unsupported AWS 'algorithm': '{algorithm[:80]}'"
        raise SignatureRefused(WhyRefused.INCOMPLETE, text)
    fields = {}
    for part in rest.split(","):
        name, _, value = part.strip().partition("=")
        fields[name] = value
    credential = fields.get("Credential")
    claim = _claim(credential) if credential else None
    return claim, fields.get("SignedHeaders", ""), fields.get("Signature", "")


def _in_query(query: str) -> _Signed:
    fields = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name.startswith("X-Amz-"):
            fields[name] = unquote_to_bytes(value).decode("latin-1")
    if "X-Amz-Signature" not in fields and "X-Amz-Credential" not in fields:
        raise SignatureRefused(WhyRefused.MISSING)
    if fields.get("X-Amz-Algorithm") != ALGORITHM:
        raise SignatureRefused(
            WhyRefused.INCOMPLETE, "AWS query-string parameters must include 'X-Amz-Algorithm'."
        )
    for name in ("Credential", "Signature", "SignedHeaders", "Date"):
        if not fields.get(f"X-Amz-{name}"):
            text = f"AWS query-string parameters must include 'X-Amz-{name}'. Re-examine the query-string parameters."
            raise SignatureRefused(WhyRefused.INCOMPLETE, text)
    expires = fields.get("X-Amz-Expires", "")
    if expires and (not expires.isdecimal() or len(expires) > 6 or int(expires) > EXPIRES_S_MAX):
        raise SignatureRefused(
            WhyRefused.INCOMPLETE, f"X-Amz-Expires must be between 1 and {EXPIRES_S_MAX} seconds."
        )
    return _Signed(
        _claim(fields["X-Amz-Credential"]),
        fields["X-Amz-SignedHeaders"],
        fields["X-Amz-Signature"],
        fields["X-Amz-Date"],
        int(expires) if expires else None,
        _canonical_query(query, without="X-Amz-Signature"),
    )


def _claim(credential: str) -> Claim:
    """A key may have slashes in it, so it is read from the end."""
    parts = credential.rsplit("/", _SCOPE_PARTS - 1)
    return Claim(*parts) if len(parts) == _SCOPE_PARTS else Claim(credential)


def _check_scope(claim: Claim, date: str, service: str) -> None:
    if not claim.terminator:
        text = "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got "
        raise SignatureRefused(WhyRefused.INCOMPLETE, f"{text}'{claim.access_key[:200]}'")
    if claim.terminator != _TERMINATOR:
        text = f"Credential should be scoped with a valid terminator: '{_TERMINATOR}', not '{claim.terminator[:80]}'."
        raise SignatureRefused(WhyRefused.MISMATCH, text)
    if claim.service != service:
        text = f"Credential should be scoped to correct service: '{service}'."
        raise SignatureRefused(WhyRefused.MISMATCH, text)
    if not claim.region:
        raise SignatureRefused(WhyRefused.MISMATCH, "Credential should be scoped to a valid region.")
    if claim.day != date[:8]:
        text = (
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"'{claim.day[:80]}' != '{date[:8]}', from '{date[:80]}'."
        )
        raise SignatureRefused(WhyRefused.MISMATCH, text)


def _check_time(signed: _Signed, now_ms: int) -> None:
    date = signed.date
    signed_at_ms = _parse_date(date)
    if signed_at_ms is None:
        text = f"Date must be in ISO-8601 'basic format'. Got '{date[:80]}'."
        raise SignatureRefused(WhyRefused.INCOMPLETE, text)
    if signed_at_ms > now_ms + SKEW_MS_MAX:
        now, latest = _write_date(now_ms), _write_date(now_ms + SKEW_MS_MAX)
        text = f"Signature not yet current: {date} is still later than {latest} ({now} + 15 min.)"
        raise SignatureRefused(WhyRefused.MISMATCH, text)
    lasts_ms = SKEW_MS_MAX if signed.expires_s is None else 1_000 * signed.expires_s
    if signed_at_ms < now_ms - lasts_ms:
        now, earliest = _write_date(now_ms), _write_date(now_ms - lasts_ms)
        text = f"Signature expired: {date} is now earlier than {earliest} ({now} - {lasts_ms // 60_000} min.)"
        raise SignatureRefused(WhyRefused.MISMATCH, text)


def _check_names(names: list[str], headers: Mapping[str, str]) -> None:
    if "host" not in names:
        text = "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
        raise SignatureRefused(WhyRefused.MISMATCH, text)
    for name in (_DATE, _TARGET):
        if name in headers and name not in names:
            text = f"'{name}' must be a 'SignedHeader' in the AWS Authorization."
            raise SignatureRefused(WhyRefused.MISMATCH, text)


def _derive(secret: str, claim: Claim) -> bytes:
    key = ("AWS4" + secret).encode()
    for part in (claim.day, claim.region, claim.service, _TERMINATOR):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def _canonical_path(path: str) -> str:
    """Without dots and empty steps, and encoded once more than it was sent."""
    if path == "/":
        return path
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            if steps:
                steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    normal = "/" + "/".join(steps) + ("/" if steps and path.endswith("/") else "")
    return quote(normal, safe="/~")


def _canonical_query(query: str, *, without: str) -> str:
    pairs = []
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if name and name != without:
            pairs.append((_encoded(name), _encoded(value)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _encoded(text: str) -> str:
    return quote(unquote_to_bytes(text), safe="-_.~")


def _trimmed(value: str) -> str:
    return " ".join(value.split()) if " " in value or "\t" in value else value


@lru_cache(maxsize=_DATES_MAX)
def _parse_date(date: str) -> int | None:
    """Of 20261118T133000Z, in milliseconds since 1970; None where it is none."""
    if len(date) != _DATE_CHARACTERS or date[8] != "T" or date[15] != "Z" or not date.isascii():
        return None
    digits = date[:8] + date[9:15]
    if not digits.isdecimal():
        return None
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
    hour, minute, second = int(digits[8:10]), int(digits[10:12]), int(digits[12:14])
    if year < 1970 or not 1 <= month <= 12 or not 1 <= day <= 31 or hour > 23 or minute > 59 or second > 60:
        return None
    return 1_000 * timegm((year, month, day, hour, minute, second))


def _write_date(at_ms: int) -> str:
    year, month, day, hour, minute, second, *_ = gmtime(at_ms // 1_000)
    return f"{year:04d}{month:02d}{day:02d}T{hour:02d}{minute:02d}{second:02d}Z"
