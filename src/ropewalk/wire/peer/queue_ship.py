"""QueueShip (key 10027): dead letters for a partition, under the identity of the producer that brings them; answered when they are committed."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.queue_parts import QueueRecord, QueueRefusal
from ropewalk.wire.types import Int16, Int32, Int64, Message, Uuid


class QueueShipRequest(Message, frozen=True):
    topic_id: Uuid
    partition: Int32
    producer_id: Int64
    producer_epoch: Int16
    sequence: Int32
    message_count: Int32
    first_index: Int32
    records: tuple[QueueRecord, ...]
    """Their offsets mean nothing."""


class QueueShipResponse(Message, frozen=True):
    refusal: QueueRefusal
    arrival: str = ""
    message_count: Int32 = 0


API: Final = Api(
    key=10027,
    name="QueueShip",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=QueueShipRequest,
    response=QueueShipResponse,
)
