"""QueueLook (key 10025): how a partition of a queue stands, and messages of it that somebody looks at without taking them."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.queue_parts import QueueRecord, QueueRefusal
from ropewalk.wire.types import Int32, Int64, Message, Uuid


class QueueLookRequest(Message, frozen=True):
    queue_id: Uuid
    partition: Int32
    count_max: Int32 = 0
    """How many of the first unsettled messages are wanted."""
    offset: Int64 = -1
    """One message, whatever has become of it; -1: none."""


class QueueSeen(Message, frozen=True):
    record: QueueRecord
    state: str
    receive_count: Int32
    first_received_at_ms: Int64
    attempt: Int64
    until_ms: Int64
    behind_offset: Int64
    """-1: nothing holds it up."""


class QueueLookResponse(Message, frozen=True):
    refusal: QueueRefusal
    visible_count: Int64 = 0
    in_flight_count: Int64 = 0
    delayed_count: Int64 = 0
    oldest_sent_at_ms: Int64 = -1
    """-1: nothing is there."""
    seen: tuple[QueueSeen, ...] = ()


API: Final = Api(
    key=10025,
    name="QueueLook",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=QueueLookRequest,
    response=QueueLookResponse,
)
