"""IssueToken (key 10500): a token of the cluster's own, for a user to log in with. An API of ours.

v1  session tokens, with an access key for requests to the SQS door

Kafka has CreateDelegationToken for a like purpose, whose tokens are passwords that brokers keep (ADR 0025).
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message, since


class IssueTokenRequest(Message, frozen=True):
    user: str
    """Empty for whoever asks."""
    lifetime_ms: Int64
    """-1 for the usual."""
    is_session: Annotated[bool, since(1)] = False
    """For signatures with an access key, and nothing else."""


class IssueTokenResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None = None
    user: str = ""
    token: str = ""
    issued_at_ms: Int64 = -1
    ends_at_ms: Int64 = -1
    access_key: Annotated[str, since(1)] = ""
    secret: Annotated[str, since(1)] = ""
    """Of a session token; else empty."""

    def __repr__(self) -> str:
        """Whoever has the token is its user."""
        return f"IssueTokenResponse(error_code={self.error_code}, {self.error_message!r}, {self.user!r}, …)"


API: Final = Api(
    key=10500,
    name="IssueToken",
    versions=range(0, 1 + 1),
    flexible_since=0,
    request=IssueTokenRequest,
    response=IssueTokenResponse,
)
