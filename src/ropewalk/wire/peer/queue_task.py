"""QueueTask (key 10028): what a move task has come to in a partition of a queue."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.queue_parts import QueueRefusal
from ropewalk.wire.types import Int32, Int64, Message, Uuid


class QueueTaskRequest(Message, frozen=True):
    queue_id: Uuid
    partition: Int32


class QueueTaskResponse(Message, frozen=True):
    refusal: QueueRefusal
    task_id: bytes = b""
    """Of the latest task that came there; empty: none did."""
    end_offset: Int64 = 0
    moved_count: Int64 = 0
    ending: str = ""
    """COMPLETED, CANCELLED or FAILED; empty: it goes on."""
    reason: str = ""


API: Final = Api(
    key=10028,
    name="QueueTask",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=QueueTaskRequest,
    response=QueueTaskResponse,
)
