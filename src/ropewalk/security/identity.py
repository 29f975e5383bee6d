"""Who is at the other end of a connection, how that came to be known, and until when it holds."""

from typing import Final

from msgspec import Struct

from ropewalk.base.errors import RopewalkError

ANONYMOUS: Final = "anonymous"
BY_CERTIFICATE: Final = "certificate"
BY_OAUTH: Final = "OAUTHBEARER"
"""By a token of an authority."""
BY_TOKEN: Final = "token"
"""By a token of the cluster's own, whatever it came in."""

BY_SIGNATURE: Final = "signature"
"""By requests that are signed with an access key."""


class CertificateRefused(RopewalkError):
    """A certificate that says no name, not the one that is claimed, or none any more."""


class Identity(Struct, frozen=True):
    principal: str
    """As in `User:NAME`."""

    groups: tuple[str, ...] = ()
    method: str = ANONYMOUS
    """`anonymous`, `certificate`, the SASL mechanism by which a name was proved, `token` for one of the cluster's own, or `signature`."""

    ends_at_ms: float | None = None
    """By the node's clock; None: it does not end."""

    @property
    def name(self) -> str:
        """Without the kind: whose quotas apply."""
        return self.principal.partition(":")[2]


ANONYMOUS_IDENTITY: Final = Identity("User:ANONYMOUS")
"""Whoever has not said a name, as Kafka calls them."""
