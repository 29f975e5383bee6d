"""Forward (key 10008): a client's request, carried to the controller with the name of whoever sent it.

The body is the request's in Kafka's encoding without a header, and so is the answer's.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Int16, Int32, Int64, Message, tagged


class ForwardRequest(Message, frozen=True):
    api_key: Int16
    api_version: Int16
    principal: str
    client_id: str | None
    host: str
    throttled: str | None
    """Why the client may not change anything at present; None if it may."""
    body: bytes
    groups: Annotated[tuple[str, ...], tagged(20)] = ()
    """Of the principal, with which rights may have been given to it as well."""
    method: Annotated[str, tagged(21)] = "anonymous"
    """How the principal came to be known."""
    listener: Annotated[str, tagged(22)] = ""
    """By which of the node's addresses the client came; empty: none was said."""


class ForwardResponse(ControllerAnswer, frozen=True):
    metadata_offset: Int64 = 0
    """Where the controller's metadata ends. Whoever forwarded waits for it, so that its client sees what it has done."""
    mutation_count: Int32 = 0
    """Partitions that were made or deleted, for the client's quota."""
    body: bytes = b""


API: Final = Api(
    key=10008,
    name="Forward",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=ForwardRequest,
    response=ForwardResponse,
)
