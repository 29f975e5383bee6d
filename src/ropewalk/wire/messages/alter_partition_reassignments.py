"""AlterPartitionReassignments (key 45): move partitions to other brokers, or stop moving them.

v1  whether the number of replicas may change

Ours: the cluster works out the moves itself, by the load that its brokers carry, and tells what it was told of that load.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Float64, Int16, Int32, Int64, Message, since, tagged


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
    balance: Annotated[bool, tagged(10_000)] = False
    """Even out what the brokers carry, rather than move what is named."""
    validate_only: Annotated[bool, tagged(10_001)] = False
    """With `balance`: only say what would be done."""


class BalanceChange(Message, frozen=True):
    """The replicas of one partition, the leader first."""

    topic_name: str
    index: Int32
    before: tuple[Int32, ...]
    after: tuple[Int32, ...]


class BalanceShare(Message, frozen=True):
    """Of everything that is carried, what one broker carries."""

    node_id: Int32
    before: Float64
    after: Float64


class BusyPartition(Message, frozen=True):
    """Per second."""

    topic_name: str
    index: Int32
    leader_id: Int32
    bytes_in: Int64
    bytes_out: Int64
    share: Float64


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
    changes: Annotated[tuple[BalanceChange, ...], tagged(10_000)] = ()
    shares: Annotated[tuple[BalanceShare, ...], tagged(10_001)] = ()
    busiest: Annotated[tuple[BusyPartition, ...], tagged(10_002)] = ()
    nodes_wanted: Annotated[tuple[str, ...], tagged(10_003)] = ()
    """Why the cluster wants another node; empty if it does not."""


API: Final = Api(
    key=45,
    name="AlterPartitionReassignments",
    versions=range(0, 1 + 1),
    flexible_since=0,
    request=AlterPartitionReassignmentsRequest,
    response=AlterPartitionReassignmentsResponse,
)
