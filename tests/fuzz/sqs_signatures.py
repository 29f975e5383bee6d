"""Signatures for the requests of a campaign: most are right, and the others are wrong in the ways that somebody could try.

A signed request does not follow from its number alone: the time is in it.
"""

import random
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl, quote

from ropewalk.security.sigv4 import ALGORITHM
from ropewalk.security.sigv4_signing import Credentials, Signer

KEY: Final = "AKIDFUZZ"
SECRET: Final = "a secret that is known to both"
_REGION: Final = "eu-west-1"
_RIGHT_SHARE: Final = 0.9
_DAY_MS: Final = 86_400_000

Headers = dict[str, str]


class Signatures:
    def __init__(self) -> None:
        self._signer = Signer(Credentials(KEY, SECRET), region=_REGION, service="sqs")
        self._others = (
            Signer(Credentials(KEY, SECRET + " "), region=_REGION, service="sqs"),
            Signer(Credentials("AKIDNOBODY", SECRET), region=_REGION, service="sqs"),
            Signer(Credentials(KEY, SECRET), region=_REGION, service="s3"),
            Signer(Credentials(KEY, SECRET), region="", service="sqs"),
            Signer(Credentials("a/b/c", SECRET), region=_REGION, service="sqs"),
        )

    def sign(
        self, rng: random.Random, method: str, path: str, query: str, headers: Headers, body: bytes
    ) -> tuple[Headers, str, bool]:
        """The headers and the query to send, and whether the node must refuse them."""
        fields = _fields(query)
        if fields is None:
            return headers, query, True
        now_ms = time.time_ns() // 1_000_000
        query = "&".join(
            f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
            for name, value in sorted(fields.items())
        )
        if rng.random() < _RIGHT_SHARE:
            return (
                self._signer.signed(method, path, headers, body, now_ms=now_ms, query=fields),
                query,
                False,
            )
        if rng.random() < 0.5:
            forge = rng.choice(_FORGERIES)
            signed = self._signer.signed(method, path, headers, body, now_ms=now_ms, query=fields)
            forge(rng, signed)
            return signed, query, True
        if rng.random() < 0.5:
            signer = rng.choice(self._others)
            return signer.signed(method, path, headers, body, now_ms=now_ms, query=fields), query, True
        if rng.random() < 0.5:
            shifted_ms = now_ms + rng.choice(
                (-_DAY_MS, -1_000_000, 1_000_000, 400 * _DAY_MS, -20_000 * _DAY_MS)
            )
            return (
                self._signer.signed(method, path, headers, body, now_ms=shifted_ms, query=fields),
                query,
                True,
            )
        return headers, f"{query}{'&' if query else ''}{_presigned(rng)}", True


def _fields(query: str) -> dict[str, str] | None:
    """None where the query cannot be signed as it stands: a name that comes twice."""
    if not query:
        return {}
    pairs = parse_qsl(query, keep_blank_values=True)
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else None


def _mutate_signature(rng: random.Random, headers: Headers) -> None:
    authorization = headers["authorization"]
    position = len(authorization) - rng.randrange(1, 65)
    other = "0" if authorization[position] != "0" else "1"
    headers["authorization"] = authorization[:position] + other + authorization[position + 1 :]


def _cut(rng: random.Random, headers: Headers) -> None:
    authorization = headers["authorization"]
    headers["authorization"] = authorization[: rng.randrange(len(authorization))]


def _empty_signature(rng: random.Random, headers: Headers) -> None:
    said, _, _ = headers["authorization"].rpartition("Signature=")
    headers["authorization"] = said + rng.choice(("Signature=", "Signature=é", f"Signature={'0' * 64}", ""))


def _other_algorithm(rng: random.Random, headers: Headers) -> None:
    other = rng.choice(
        ("AWS4-HMAC-SHA1", "AWS4-ECDSA-P256-SHA256", "Basic", "", ALGORITHM.lower(), "=" * 200)
    )
    headers["authorization"] = headers["authorization"].replace(ALGORITHM, other, 1)


def _fewer_names(rng: random.Random, headers: Headers) -> None:
    name = rng.choice(("host;", "SignedHeaders=", "x-amz-date", "Credential="))
    headers["authorization"] = headers["authorization"].replace(name, rng.choice(("", ";" * 50, "é;")), 1)


def _other_date(rng: random.Random, headers: Headers) -> None:
    headers["x-amz-date"] = rng.choice(
        (
            "",
            "20261118",
            "20261118T000000Z0",
            "99999999T999999Z",
            "20260230T000000Z",
            "é" * 16,
            "0" * 16,
            "-0001118T000000Z",
        )
    )


def _no_date(_: random.Random, headers: Headers) -> None:
    del headers["x-amz-date"]


def _other_host(_: random.Random, headers: Headers) -> None:
    headers["host"] = "m"


def _second_authorization(_: random.Random, headers: Headers) -> None:
    headers["authorization"] = f"{headers['authorization']}, {headers['authorization'][:-1]}g"


_FORGERIES: Final[tuple[Callable[[random.Random, Headers], None], ...]] = (
    _mutate_signature,
    _mutate_signature,
    _cut,
    _empty_signature,
    _other_algorithm,
    _fewer_names,
    _other_date,
    _no_date,
    _other_host,
    _second_authorization,
)


def _presigned(rng: random.Random) -> str:
    values = {
        "X-Amz-Algorithm": rng.choice((ALGORITHM, "x", "")),
        "X-Amz-Credential": rng.choice(
            (f"{KEY}%2F20261118%2F{_REGION}%2Fsqs%2Faws4_request", "%2F%2F%2F%2F", "%C3%A9", "x")
        ),
        "X-Amz-Date": rng.choice(("20261118T000000Z", "%00", "")),
        "X-Amz-Expires": rng.choice(("60", "-1", "999999999999", "%C2%B2", "")),
        "X-Amz-SignedHeaders": rng.choice(("host", "", ";", "%C3%A9")),
        "X-Amz-Signature": rng.choice(("0" * 64, "", "%C3%A9")),
    }
    return "&".join(f"{name}={value}" for name, value in values.items() if rng.random() < 0.9)
