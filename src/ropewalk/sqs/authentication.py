"""Who asks: by a signature that is verified, or, in development, by what the request says of itself.

What a reader could get wrong
    In development any key will do, and none. Nothing is checked, so such a door listens on a loopback address only, unless somebody insists.
    What a request says of itself there proves nothing: where rules decide, it is nobody's in particular.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.base.ports import Clock
from ropewalk.http1.message import Request
from ropewalk.security import sigv4
from ropewalk.security.identity import ANONYMOUS_IDENTITY, BY_SIGNATURE
from ropewalk.security.identity import Identity as Owner
from ropewalk.security.sigv4 import (
    Claim,
    SignatureRefused,
    SigningKeys,
    WhyRefused,
)
from ropewalk.sqs.errors import (
    INCOMPLETE_SIGNATURE,
    INVALID_CLIENT_TOKEN,
    MISSING_AUTHENTICATION_TOKEN,
    SIGNATURE_DOES_NOT_MATCH,
    Fault,
    SqsRefusal,
)

SERVICE: Final = "sqs"
REGION: Final = "us-east-1"
"""Of those who say none."""

_FAULTS: Final[Mapping[WhyRefused, Fault]] = {
    WhyRefused.MISSING: MISSING_AUTHENTICATION_TOKEN,
    WhyRefused.INCOMPLETE: INCOMPLETE_SIGNATURE,
    WhyRefused.UNKNOWN_KEY: INVALID_CLIENT_TOKEN,
    WhyRefused.MISMATCH: SIGNATURE_DOES_NOT_MATCH,
}


class Identity(Struct, frozen=True):
    access_key: str
    region: str
    is_admin: bool = True
    owner: Owner = ANONYMOUS_IDENTITY
    """Whose key it is, as far as that was proved."""


class Key(Struct, frozen=True):
    """What the door knows of an access key."""

    secret: str
    is_admin: bool = False
    user: str = ""
    """Whose it is; empty: it has no owner but itself, and is called as its id is."""


class Authentication(Protocol):
    def identify(self, request: Request) -> Identity:
        """Raises `SqsRefusal`."""


_NOBODY: Final = Identity("", REGION)


class AnyKey:
    """Development: whoever asks is believed."""

    __slots__ = ()

    def identify(self, request: Request) -> Identity:
        claim = sigv4.claimed(request.headers, request.query)
        return _NOBODY if claim is None else Identity(claim.access_key, claim.region or REGION)


class KnownKeys:
    """Signatures are verified, with keys that may change while the node runs."""

    __slots__ = ("_clock", "_keys", "_owners", "_signing_keys")

    def __init__(self, clock: Clock, keys: Mapping[str, Key]) -> None:
        self._clock = clock
        self.replace(keys)

    def replace(self, keys: Mapping[str, Key]) -> None:
        """From the next request on these count and no others."""
        self._keys = dict(keys)
        self._owners = {
            access_key: Owner(f"User:{key.user or access_key}", method=BY_SIGNATURE)
            for access_key, key in keys.items()
        }
        self._signing_keys = SigningKeys()

    def identify(self, request: Request) -> Identity:
        try:
            claim = sigv4.verify(
                request.method,
                request.target,
                request.headers,
                request.body,
                secret_of=self._secret_of,
                service=SERVICE,
                now_ms=self._clock.now_ms(),
                signing_keys=self._signing_keys,
            )
        except SignatureRefused as refused:
            fault = _FAULTS[refused.why]
            raise SqsRefusal(fault, fault.text or str(refused)) from None
        return self._identity(claim)

    def _identity(self, claim: Claim) -> Identity:
        access_key = claim.access_key
        return Identity(access_key, claim.region, self._keys[access_key].is_admin, self._owners[access_key])

    def _secret_of(self, access_key: str) -> str | None:
        key = self._keys.get(access_key)
        return None if key is None else key.secret
