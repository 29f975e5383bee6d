"""SaslAuthenticate (key 36): one message of a login, and the answer to it.

v1  how long the session lasts
v2  flexible encoding
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int64, Message, since


class SaslAuthenticateRequest(Message, frozen=True):
    auth_bytes: bytes

    def __repr__(self) -> str:
        """It may hold a password."""
        return f"SaslAuthenticateRequest(<{len(self.auth_bytes)} bytes>)"


class SaslAuthenticateResponse(Message, frozen=True):
    error_code: Int16
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1)] = 0
    """After which the client must have logged in again; 0: it need not."""


API: Final = Api(
    key=36,
    name="SaslAuthenticate",
    versions=range(0, 2 + 1),
    flexible_since=2,
    request=SaslAuthenticateRequest,
    response=SaslAuthenticateResponse,
)
