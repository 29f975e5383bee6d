"""QueueReset (key 10026): a partition of a queue is purged, or rewound to a time; or it is asked whether the queue may be purged."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.queue_parts import QueueRefusal
from ropewalk.wire.types import Int32, Int64, Message, Uuid


class QueueResetRequest(Message, frozen=True):
    queue_id: Uuid
    partition: Int32
    rewind_to_ms: Int64
    """-1: it is purged."""
    only_asks: bool = False
    """Nothing is done: whether it would be refused to purge the queue now."""


class QueueResetResponse(Message, frozen=True):
    refusal: QueueRefusal


API: Final = Api(
    key=10026,
    name="QueueReset",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=QueueResetRequest,
    response=QueueResetResponse,
)
