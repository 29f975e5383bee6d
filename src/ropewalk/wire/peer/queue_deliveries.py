"""QueueDeliveries (key 10024): what has come of the receives that a front end left with a leader. It waits until there is something."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.queue_parts import QueueDelivered, QueueRefusal
from ropewalk.wire.types import Int32, Int64, Message, Uuid


class QueueDeliveriesRequest(Message, frozen=True):
    session_id: Uuid
    taken: Int64
    """How many deliveries of the session have been taken: those need not be kept any more."""
    wait_ms: Int32


class QueueDelivery(Message, frozen=True):
    token: Int64
    queue_id: Uuid
    refusal: QueueRefusal
    messages: tuple[QueueDelivered, ...] = ()


class QueueDeliveriesResponse(Message, frozen=True):
    deliveries: tuple[QueueDelivery, ...] = ()


API: Final = Api(
    key=10024,
    name="QueueDeliveries",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=QueueDeliveriesRequest,
    response=QueueDeliveriesResponse,
)
