"""DescribeTopicPartitions (key 75): topics page by page, with their eligible leader replicas. There is one version.

Ours, for those who ask: who owns a topic, when it was made and changed, which queue it is of, who observes it, and what is being moved.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message, Uuid, tagged


class TopicRequest(Message, frozen=True):
    name: str


class Cursor(Message, frozen=True):
    topic_name: str
    index: Int32


class DescribeTopicPartitionsRequest(Message, frozen=True):
    topics: tuple[TopicRequest, ...]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None
    """Where to go on; null starts at the beginning."""
    include_details: Annotated[bool, tagged(10_000)] = False


class DescribeTopicPartitionsResponsePartition(Message, frozen=True):
    error_code: Int16
    index: Int32
    leader_id: Int32
    leader_epoch: Int32 = -1
    replica_nodes: tuple[Int32, ...] = ()
    isr_nodes: tuple[Int32, ...] = ()
    eligible_leader_replicas: tuple[Int32, ...] | None = None
    last_known_elr: tuple[Int32, ...] | None = None
    offline_replicas: tuple[Int32, ...] = ()
    observers: Annotated[tuple[Int32, ...], tagged(10_000)] = ()
    adding_replicas: Annotated[tuple[Int32, ...], tagged(10_001)] = ()
    removing_replicas: Annotated[tuple[Int32, ...], tagged(10_002)] = ()
    minimum_in_sync: Annotated[Int32, tagged(10_003)] = 0
    """`min.insync.replicas`, as it is for this partition."""


class DescribeTopicPartitionsResponseTopic(Message, frozen=True):
    error_code: Int16
    name: str | None
    topic_id: Uuid
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: Int32 = -(2**31)
    owner: Annotated[str | None, tagged(10_000)] = None
    created_at_ms: Annotated[Int64, tagged(10_001)] = 0
    modified_at_ms: Annotated[Int64, tagged(10_002)] = 0
    queue: Annotated[str | None, tagged(10_003)] = None
    """The name of the queue whose messages are in it."""


class DescribeTopicPartitionsResponse(Message, frozen=True):
    throttle_ms: Int32
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...]
    next_cursor: Cursor | None = None
    """Null when there is no more."""


API: Final = Api(
    key=75,
    name="DescribeTopicPartitions",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=DescribeTopicPartitionsRequest,
    response=DescribeTopicPartitionsResponse,
)
