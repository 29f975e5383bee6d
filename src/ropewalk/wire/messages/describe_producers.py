"""DescribeProducers (key 61): who writes to a partition idempotently or in a transaction. There is one version."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message


class TopicRequest(Message, frozen=True):
    name: str
    partition_indexes: tuple[Int32, ...]


class DescribeProducersRequest(Message, frozen=True):
    topics: tuple[TopicRequest, ...]


class ProducerState(Message, frozen=True):
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Message, frozen=True):
    index: Int32
    error_code: Int16
    error_message: str | None = None
    active_producers: tuple[ProducerState, ...] = ()


class TopicResponse(Message, frozen=True):
    name: str
    partitions: tuple[PartitionResponse, ...]


class DescribeProducersResponse(Message, frozen=True):
    throttle_ms: Int32
    topics: tuple[TopicResponse, ...]


API: Final = Api(
    key=61,
    name="DescribeProducers",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=DescribeProducersRequest,
    response=DescribeProducersResponse,
)
