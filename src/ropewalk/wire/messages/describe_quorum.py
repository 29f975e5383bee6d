"""DescribeQuorum (key 55): who votes on the metadata, who decides, and how far each has come.

v1  when each was heard last, and when it last had everything
v2  directories of the voters, messages, and where the voters are reached
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import UUID_ZERO, Int16, Int32, Int64, Message, UInt16, Uuid, since


class QuorumPartition(Message, frozen=True):
    index: Int32


class QuorumTopic(Message, frozen=True):
    name: str
    partitions: tuple[QuorumPartition, ...]


class DescribeQuorumRequest(Message, frozen=True):
    topics: tuple[QuorumTopic, ...]


class QuorumReplica(Message, frozen=True):
    replica_id: Int32
    replica_directory_id: Annotated[Uuid, since(2)] = UUID_ZERO
    log_end_offset: Int64 = -1
    last_fetch_timestamp: Annotated[Int64, since(1)] = -1
    last_caught_up_timestamp: Annotated[Int64, since(1)] = -1


class QuorumPartitionData(Message, frozen=True):
    index: Int32
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(2)] = None
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    high_watermark: Int64 = -1
    current_voters: tuple[QuorumReplica, ...] = ()
    observers: tuple[QuorumReplica, ...] = ()


class QuorumTopicData(Message, frozen=True):
    name: str
    partitions: tuple[QuorumPartitionData, ...]


class QuorumListener(Message, frozen=True):
    name: str
    host: str
    port: UInt16


class QuorumNode(Message, frozen=True):
    node_id: Int32
    listeners: tuple[QuorumListener, ...]


class DescribeQuorumResponse(Message, frozen=True):
    error_code: Int16
    error_message: Annotated[str | None, since(2)] = None
    topics: tuple[QuorumTopicData, ...] = ()
    nodes: Annotated[tuple[QuorumNode, ...], since(2)] = ()


API: Final = Api(
    key=55,
    name="DescribeQuorum",
    versions=range(0, 2 + 1),
    flexible_since=0,
    request=DescribeQuorumRequest,
    response=DescribeQuorumResponse,
)
