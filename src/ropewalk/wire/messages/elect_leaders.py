"""ElectLeaders (key 43): preferred leaders take over, or, on request, whoever is there.

v1  election_type; an error for the whole response
v2  flexible encoding
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message, since


class TopicPartitions(Message, frozen=True):
    name: str
    partitions: tuple[Int32, ...]


class ElectLeadersRequest(Message, frozen=True):
    election_type: Annotated[Int8, since(1)] = 0
    topic_partitions: tuple[TopicPartitions, ...] | None = ()
    """Null asks for all."""
    timeout_ms: Int32 = 60_000


class PartitionResult(Message, frozen=True):
    index: Int32
    error_code: Int16
    error_message: str | None


class ReplicaElectionResult(Message, frozen=True):
    name: str
    partitions: tuple[PartitionResult, ...]


class ElectLeadersResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Annotated[Int16, since(1)] = 0
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()


API: Final = Api(
    key=43,
    name="ElectLeaders",
    versions=range(0, 2 + 1),
    flexible_since=2,
    request=ElectLeadersRequest,
    response=ElectLeadersResponse,
)
