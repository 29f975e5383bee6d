"""ListPartitionReassignments (key 46): which partitions are moving. There is one version."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message


class ListPartitionReassignmentsTopics(Message, frozen=True):
    name: str
    partition_indexes: tuple[Int32, ...]


class ListPartitionReassignmentsRequest(Message, frozen=True):
    timeout_ms: Int32 = 60_000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None
    """Null asks for all."""


class OngoingPartitionReassignment(Message, frozen=True):
    index: Int32
    replicas: tuple[Int32, ...]
    adding_replicas: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...]


class OngoingTopicReassignment(Message, frozen=True):
    name: str
    partitions: tuple[OngoingPartitionReassignment, ...]


class ListPartitionReassignmentsResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None
    topics: tuple[OngoingTopicReassignment, ...]


API: Final = Api(
    key=46,
    name="ListPartitionReassignments",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=ListPartitionReassignmentsRequest,
    response=ListPartitionReassignmentsResponse,
)
