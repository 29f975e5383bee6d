"""QueueSend (key 10021): a front end has messages for a partition of a queue; answered when they are committed."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.queue_parts import QueueHeader, QueueRefusal
from ropewalk.wire.types import Int32, Int64, Message, Uuid


class QueueOutgoing(Message, frozen=True):
    body: bytes
    headers: tuple[QueueHeader, ...]
    sent_at_ms: Int64
    group: str
    deduplication_id: str
    delay_ms: Int64


class QueueSendRequest(Message, frozen=True):
    queue_id: Uuid
    partition: Int32
    messages: tuple[QueueOutgoing, ...]


class QueueSent(Message, frozen=True):
    refusal: QueueRefusal
    offset: Int64 = -1
    is_duplicate: bool = False


class QueueSendResponse(Message, frozen=True):
    refusal: QueueRefusal
    """Of all of them."""
    outcomes: tuple[QueueSent, ...] = ()


API: Final = Api(
    key=10021,
    name="QueueSend",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=QueueSendRequest,
    response=QueueSendResponse,
)
