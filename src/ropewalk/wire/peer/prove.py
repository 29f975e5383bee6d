"""Prove (key 10001): the caller's half of what `Hello` began. Nothing else is answered before it."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Message


class ProveRequest(Message, frozen=True):
    proof: bytes


class ProveResponse(Message, frozen=True):
    error_code: Int16
    error_message: str | None = None


API: Final = Api(
    key=10001,
    name="Prove",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=ProveRequest,
    response=ProveResponse,
)
