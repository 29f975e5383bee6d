"""ReplaceTokenKey (key 10501): another key signs the cluster's own tokens from here on. An API of ours; there is one version."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message


class ReplaceTokenKeyRequest(Message, frozen=True):
    is_known_to_others: bool = False
    """No token of a former key counts any more."""


class ReplaceTokenKeyResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None = None
    key_id: str = ""


API: Final = Api(
    key=10501,
    name="ReplaceTokenKey",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=ReplaceTokenKeyRequest,
    response=ReplaceTokenKeyResponse,
)
