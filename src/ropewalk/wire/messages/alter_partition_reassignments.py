"""AlterPartitionReassignments (key 45): move partitions to other brokers, or stop moving them.

v1  whether the number of replicas may change
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, since


class ReassignablePartition(Message, frozen=True):
    index: Int32
    replicas: tuple[Int32, ...] | None = None
    """Null gives up a reassignment that is under way."""


class ReassignableTopic(Message, frozen=True):
    name: str
    partitions: tuple[ReassignablePartition, ...]


class AlterPartitionReassignmentsRequest(Message, frozen=True):
    timeout_ms: Int32 = 60_000
    allow_replication_factor_change: Annotated[bool, since(1)] = True
    topics: tuple[ReassignableTopic, ...] = ()


class ReassignablePartitionResponse(Message, frozen=True):
    index: Int32
    error_code: Int16
    error_message: str | None


class ReassignableTopicResponse(Message, frozen=True):
    name: str
    partitions: tuple[ReassignablePartitionResponse, ...]


class AlterPartitionReassignmentsResponse(Message, frozen=True):
    throttle_ms: Int32
    allow_replication_factor_change: Annotated[bool, since(1)] = True
    error_code: Int16 = 0
    error_message: str | None = None
    topics: tuple[ReassignableTopicResponse, ...] = ()


API: Final = Api(
    key=45,
    name="AlterPartitionReassignments",
    versions=range(0, 1 + 1),
    flexible_since=0,
    request=AlterPartitionReassignmentsRequest,
    response=AlterPartitionReassignmentsResponse,
)
