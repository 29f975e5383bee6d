"""QueueCredits (key 10023): a front end leaves receives with a leader, and takes back others. What comes of them is told by QueueDeliveries."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int32, Int64, Message, Uuid


class QueueCredit(Message, frozen=True):
    token: Int64
    queue_id: Uuid
    partition: Int32
    count_max: Int32
    visibility_ms: Int64
    wait_ms: Int64
    request_id: bytes


class QueueCreditsRequest(Message, frozen=True):
    session_id: Uuid
    """One for each pair of front end and leader, as long as nothing breaks between them."""
    credits: tuple[QueueCredit, ...]
    withdrawn: tuple[Int64, ...]


class QueueCreditsResponse(Message, frozen=True):
    pass


API: Final = Api(
    key=10023,
    name="QueueCredits",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=QueueCreditsRequest,
    response=QueueCreditsResponse,
)
