"""SaslHandshake (key 17): by which mechanism a client will say who it is.

v1  the login follows in SaslAuthenticate; after v0 it follows in frames without headers
"""

from typing import Final

from ropewalk.wire.api import NEVER_FLEXIBLE, Api
from ropewalk.wire.types import Int16, Message


class SaslHandshakeRequest(Message, frozen=True):
    mechanism: str


class SaslHandshakeResponse(Message, frozen=True):
    error_code: Int16
    mechanisms: tuple[str, ...] = ()
    """Those that the listener takes."""


API: Final = Api(
    key=17,
    name="SaslHandshake",
    versions=range(0, 1 + 1),
    flexible_since=NEVER_FLEXIBLE,
    request=SaslHandshakeRequest,
    response=SaslHandshakeResponse,
)
