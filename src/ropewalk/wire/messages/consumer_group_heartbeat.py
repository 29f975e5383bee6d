"""ConsumerGroupHeartbeat (key 68): all that a member of a group with server-side assignment ever sends (KIP-848).

v1  the client makes its member id itself; subscription by regular expression

Null, or -1 for the timeout, means "as before": a member says everything once, and again after an error.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, Uuid, since


class TopicPartitions(Message, frozen=True):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class ConsumerGroupHeartbeatRequest(Message, frozen=True):
    group_id: str
    member_id: str
    member_epoch: Int32
    """0 joins, -1 leaves, -2 leaves as a static member that will come back."""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: Annotated[str | None, since(1)] = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None
    """What the member owns."""


class Assignment(Message, frozen=True):
    topic_partitions: tuple[TopicPartitions, ...]


class ConsumerGroupHeartbeatResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
    """Null: as before."""


API: Final = Api(
    key=68,
    name="ConsumerGroupHeartbeat",
    versions=range(0, 1 + 1),
    flexible_since=0,
    request=ConsumerGroupHeartbeatRequest,
    response=ConsumerGroupHeartbeatResponse,
)
