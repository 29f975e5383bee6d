"""Who is at the other end of a connection, how that came to be known, and until when it holds."""

from typing import Final

from msgspec import Struct


class Identity(Struct, frozen=True):
    principal: str
    """As in `User:NAME`."""

    groups: tuple[str, ...] = ()
    method: str = "anonymous"
    """`anonymous`, `certificate`, or the SASL mechanism."""

    ends_at_ms: float | None = None
    """By the node's clock; None: it does not end."""

    @property
    def name(self) -> str:
        """Without the kind: whose quotas apply."""
        return self.principal.partition(":")[2]


ANONYMOUS_IDENTITY: Final = Identity("User:ANONYMOUS")
"""Whoever has not said a name, as Kafka calls them."""
