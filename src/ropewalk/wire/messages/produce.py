"""Produce (key 0): append record batches to partitions.

v3  transactional_id; record batches of format v2
v5  log_start_offset in the response
v7  zstd may be used
v8  record_errors and error_message in the response
v9  flexible encoding
v10 the response may carry the current leader and where it is
v11 errors may say that a transaction can be aborted
v12 partitions are added to the transaction implicitly
v13 topics by id instead of by name

Kafka advertises versions from 0, so that older clients go on compressing, but understands only those from 3.
With acks 0 there is no response at all.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import UUID_ZERO, Int16, Int32, Int64, Message, Records, Uuid, since, tagged, until


class PartitionProduceData(Message, frozen=True):
    index: Int32
    records: Records


class TopicProduceData(Message, frozen=True):
    name: Annotated[str, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: tuple[PartitionProduceData, ...] = ()


class ProduceRequest(Message, frozen=True):
    transactional_id: Annotated[str | None, since(3)] = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topics: tuple[TopicProduceData, ...] = ()


class BatchIndexAndErrorMessage(Message, frozen=True):
    batch_index: Int32
    batch_index_error_message: str | None = None


class LeaderIdAndEpoch(Message, frozen=True):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class PartitionProduceResponse(Message, frozen=True):
    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    record_errors: Annotated[tuple[BatchIndexAndErrorMessage, ...], since(8)] = ()
    error_message: Annotated[str | None, since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, since(10), tagged(0)] = LeaderIdAndEpoch()


class TopicProduceResponse(Message, frozen=True):
    name: Annotated[str, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: tuple[PartitionProduceResponse, ...] = ()


class NodeEndpoint(Message, frozen=True):
    node_id: Int32
    host: str
    port: Int32
    rack: str | None = None


class ProduceResponse(Message, frozen=True):
    topics: tuple[TopicProduceResponse, ...]
    throttle_ms: Int32 = 0
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], since(10), tagged(0)] = ()


API: Final = Api(
    key=0,
    name="Produce",
    versions=range(3, 13 + 1),
    flexible_since=9,
    request=ProduceRequest,
    response=ProduceResponse,
)
