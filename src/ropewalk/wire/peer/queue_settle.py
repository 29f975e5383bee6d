"""QueueSettle (key 10022): messages of a partition of a queue are deleted, hidden for another time, or given back uncounted."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.queue_parts import QueueHandle, QueueRefusal
from ropewalk.wire.types import Int32, Int64, Message, Uuid


class QueueVisibility(Message, frozen=True):
    handle: QueueHandle
    visibility_ms: Int64


class QueueSettleRequest(Message, frozen=True):
    queue_id: Uuid
    partition: Int32
    deletes: tuple[QueueHandle, ...] = ()
    changes: tuple[QueueVisibility, ...] = ()
    releases: tuple[QueueHandle, ...] = ()


class QueueSettleResponse(Message, frozen=True):
    refusal: QueueRefusal
    """Of all of them."""
    deleted: tuple[QueueRefusal, ...] = ()
    changed: tuple[QueueRefusal, ...] = ()


API: Final = Api(
    key=10022,
    name="QueueSettle",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=QueueSettleRequest,
    response=QueueSettleResponse,
)
