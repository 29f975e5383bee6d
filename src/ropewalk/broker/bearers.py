"""Bearer tokens at any door: the cluster's own, and those of an authority where one is configured.

A door asks `Bearers.identify(token)`, and gets an identity or `AuthenticationFailed`, whose text is for the log and never for who came.
A door whose connections outlive a request asks `prove`, and looks at the proof again before it goes on.

What a reader could get wrong
    Who is asked about a token follows from the issuer that it names, before anything is known of it. Whoever is asked compares everything, so a
    token that names a wrong one is refused by either.
    To ask about a token may take until an authority has shown its keys (`security/jwks.py`).
"""

from typing import Protocol

from msgspec import Struct

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.ports import Clock
from ropewalk.metadata.image import Image
from ropewalk.security import bearer, tokens
from ropewalk.security.bearer import Expected, Token, parse_token
from ropewalk.security.identity import BY_OAUTH, BY_SIGNATURE, BY_TOKEN, Identity
from ropewalk.security.jwks import Jwks


class BearerProof(Protocol):
    """Who it is, and whether that still holds."""

    @property
    def identity(self) -> Identity:
        """With the end of the token as its end."""

    @property
    def version(self) -> int:
        """Another once what the proof rests on may be another, so that it is worth looking again."""

    def still_counts(self) -> bool:
        """Whether the token would be believed again, its end apart."""


class Authority(Struct, frozen=True):
    """Somebody who signs tokens for this cluster's users."""

    expected: Expected
    keys: Jwks


class Session(Struct, frozen=True):
    """Whose a session token is, and what belongs to it."""

    identity: Identity
    access_key: str
    secret: str


class Bearers:
    def __init__(self, image: Image, clock: Clock, authority: Authority | None) -> None:
        """Without an authority the cluster's own tokens are believed, and no others."""
        self._image = image
        self._clock = clock
        self._authority = authority

    async def identify(self, token: str) -> Identity:
        """Whose token it is. Raises `AuthenticationFailed`."""
        return (await self.prove(token)).identity

    async def prove(self, token: str) -> BearerProof:
        """As `identify`, for who must know later whether it still holds."""
        read = parse_token(token)
        if tokens.is_ours(read.claims.get("iss")):
            return self._own(read)
        if self._authority is None:
            raise AuthenticationFailed(
                "OAUTHBEARER: the token is not one of this cluster's own, and no authority is configured"
            )
        return await self._anothers(read, self._authority)

    def session(self, token: str) -> Session:
        """Of a session token of the cluster's own. Raises `AuthenticationFailed`, or `TokenEnded` as one of these."""
        verified = self._verified(parse_token(token), is_session=True)
        identity = Identity(f"User:{verified.user}", (), BY_SIGNATURE, verified.ends_at_ms)
        return Session(identity, tokens.access_key_of(token), tokens.secret_of(verified.key, token))

    def _own(self, token: Token) -> BearerProof:
        return _OwnProof(self._verified(token, is_session=False), self._image)

    def _verified(self, token: Token, *, is_session: bool) -> tokens.Verified:
        image = self._image
        return tokens.verify(
            token,
            cluster_id=image.cluster_id or "",
            keys=image.token_keys.by_id,
            credentials_of=image.users.of,
            now_ms=self._clock.now_ms(),
            is_session=is_session,
        )

    async def _anothers(self, token: Token, authority: Authority) -> BearerProof:
        keys = await authority.keys.knowing(token)
        claimed, key = bearer.verify(token, keys, authority.expected, self._clock.now_ms())
        identity = Identity(f"User:{claimed.subject}", claimed.groups, BY_OAUTH, claimed.ends_at_ms)
        return _AnothersProof(identity, key.thumbprint, authority.keys)


class _OwnProof:
    __slots__ = ("_image", "_verified", "identity")

    def __init__(self, verified: tokens.Verified, image: Image) -> None:
        self._verified = verified
        self._image = image
        self.identity = Identity(f"User:{verified.user}", (), BY_TOKEN, verified.ends_at_ms)

    @property
    def version(self) -> int:
        return self._image.users.version + self._image.token_keys.version  # neither ever goes back

    def still_counts(self) -> bool:
        image = self._image
        return self._verified.still_counts(image.token_keys.by_id, image.users.of(self._verified.user))


class _AnothersProof:
    __slots__ = ("_keys", "_thumbprint", "identity")

    def __init__(self, identity: Identity, thumbprint: str, keys: Jwks) -> None:
        self.identity = identity
        self._thumbprint = thumbprint
        self._keys = keys

    @property
    def version(self) -> int:
        return self._keys.version

    def still_counts(self) -> bool:
        return self._thumbprint in self._keys.keys.thumbprints
