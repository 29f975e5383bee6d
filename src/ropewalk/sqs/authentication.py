"""Who asks: by a signature that is verified, or, in development, by what the request says of itself.

What a reader could get wrong
    In development any key will do, and none. Nothing is checked, so such a door listens on a loopback address only, unless somebody insists.
    What a request says of itself there proves nothing: where rules decide, it is nobody's in particular.
    A session token of the cluster's own is verified wherever it comes, with or without a file of keys. Tokens beside other keys mean nothing.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.ports import Clock
from ropewalk.broker.bearers import Session
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
from ropewalk.security.tokens import SESSION_KEYS, TokenEnded
from ropewalk.sqs.errors import (
    EXPIRED_TOKEN,
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

_TOKEN_HEADER: Final = "x-amz-security-token"
_TOKEN_PARAMETER: Final = "X-Amz-Security-Token"

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
        return self._identity(_verified(request, self._secret_of, self._clock, self._signing_keys))

    def _identity(self, claim: Claim) -> Identity:
        access_key = claim.access_key
        return Identity(access_key, claim.region, self._keys[access_key].is_admin, self._owners[access_key])

    def _secret_of(self, access_key: str) -> str | None:
        key = self._keys.get(access_key)
        return None if key is None else key.secret


class Sessions(Protocol):
    """Of `broker.bearers.Bearers`."""

    def session(self, token: str) -> Session:
        """Raises `AuthenticationFailed`."""


class SessionKeys:
    """Users of the cluster who sign with what belongs to a session token, and beside them those who need none."""

    __slots__ = ("_clock", "_others", "_sessions", "_signing_keys")

    def __init__(self, clock: Clock, sessions: Sessions, others: Authentication) -> None:
        self._clock = clock
        self._sessions = sessions
        self._others = others
        self._signing_keys = SigningKeys()

    def identify(self, request: Request) -> Identity:
        token = request.headers.get(_TOKEN_HEADER) or request.query.get(_TOKEN_PARAMETER)
        if not token:
            return self._others.identify(request)
        claim = sigv4.claimed(request.headers, request.query)
        if claim is None or not claim.access_key.startswith(SESSION_KEYS):
            return self._others.identify(request)
        try:
            session = self._sessions.session(token)
        except TokenEnded:
            raise SqsRefusal(EXPIRED_TOKEN) from None
        except AuthenticationFailed:
            raise SqsRefusal(INVALID_CLIENT_TOKEN) from None

        def secret_of(access_key: str) -> str | None:
            return session.secret if access_key == session.access_key else None

        verified = _verified(request, secret_of, self._clock, self._signing_keys)
        return Identity(verified.access_key, verified.region, False, session.identity)


def _verified(
    request: Request, secret_of: Callable[[str], str | None], clock: Clock, signing_keys: SigningKeys
) -> Claim:
    """Raises `SqsRefusal`."""
    try:
        return sigv4.verify(
            request.method,
            request.target,
            request.headers,
            request.body,
            secret_of=secret_of,
            service=SERVICE,
            now_ms=clock.now_ms(),
            signing_keys=signing_keys,
        )
    except SignatureRefused as refused:
        fault = _FAULTS[refused.why]
        raise SqsRefusal(fault, fault.text or str(refused)) from None
