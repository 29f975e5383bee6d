"""AWS signature version 4, from the side of whoever asks: the headers that prove who a request comes from.

What a reader could get wrong
    The signature covers the bytes as they are sent. Names of headers are in lower case here and on the wire, and the path is one that
    needs no escaping.
    Keys for signing are made anew each day and for each region; a `Signer` keeps the last one.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from msgspec import Struct

ALGORITHM: Final = "AWS4-HMAC-SHA256"
_TERMINATOR: Final = "aws4_request"
_UNESCAPED: Final = "-_.~"


class Credentials(Struct, frozen=True):
    access_key: str
    secret_key: str
    session_token: str = ""
    """Of credentials that were lent for a time; empty: they are not."""

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r})"


class Signer:
    def __init__(self, credentials: Credentials, *, region: str, service: str) -> None:
        self._credentials = credentials
        self._region = region
        self._service = service
        self._key_of_day = ("", b"")

    def signed(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        now_ms: int,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """The headers and those that prove them. `host` is among the headers given; all of them are signed."""
        now = datetime.fromtimestamp(now_ms // 1000, UTC)
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        day = stamp[:8]
        all_headers = {**headers, "x-amz-date": stamp}
        if self._credentials.session_token:
            all_headers["x-amz-security-token"] = self._credentials.session_token
        names = ";".join(sorted(all_headers))
        canonical = "\n".join(
            (
                method,
                path,
                canonical_query(query or {}),
                *(f"{name}:{' '.join(all_headers[name].split())}" for name in sorted(all_headers)),
                "",
                names,
                hashlib.sha256(body).hexdigest(),
            )
        )
        scope = f"{day}/{self._region}/{self._service}/{_TERMINATOR}"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        to_sign = f"{ALGORITHM}\n{stamp}\n{scope}\n{digest}"
        signature = _hmac(self._key(day), to_sign).hex()
        all_headers["authorization"] = (
            f"{ALGORITHM} Credential={self._credentials.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return all_headers

    def _key(self, day: str) -> bytes:
        if self._key_of_day[0] != day:
            key = f"AWS4{self._credentials.secret_key}".encode()
            for part in (day, self._region, self._service, _TERMINATOR):
                key = _hmac(key, part)
            self._key_of_day = (day, key)
        return self._key_of_day[1]


def canonical_query(query: Mapping[str, str]) -> str:
    """Also what is sent: names in their order, everything escaped that may be.

    >>> canonical_query({"b": "x y", "a": "1/2"})
    'a=1%2F2&b=x%20y'
    """
    pairs = sorted(
        (quote(name, safe=_UNESCAPED), quote(value, safe=_UNESCAPED)) for name, value in query.items()
    )
    return "&".join(f"{name}={value}" for name, value in pairs)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
