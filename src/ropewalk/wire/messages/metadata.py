"""Metadata (key 3): brokers, topics, partitions and who leads them.

v1  topics may be null, which means all; controller, racks and internal topics in the response
v2  cluster_id
v3  throttle_ms
v4  allow_auto_topic_creation
v5  offline_replicas
v7  leader_epoch of each partition
v8  authorized operations, on request
v9  flexible encoding
v10 topic ids in the response and, for later use, in the request
v11 authorized operations of the cluster are gone; DescribeCluster gives them
v12 look-up by topic id
v13 an error for the whole response
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import UUID_ZERO, Int16, Int32, Message, Uuid, nullable, since

OPERATIONS_NOT_ASKED: Final = -(2**31)
"""In place of a set of authorized operations: nobody asked for it."""


class MetadataRequestTopic(Message, frozen=True):
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    name: Annotated[str | None, nullable(since=10)] = None


class MetadataRequest(Message, frozen=True):
    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, nullable(since=1)]
    allow_auto_topic_creation: Annotated[bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[bool, since(8, until=10)] = False
    include_topic_authorized_operations: Annotated[bool, since(8)] = False


class MetadataResponseBroker(Message, frozen=True):
    node_id: Int32
    host: str
    port: Int32
    rack: Annotated[str | None, since(1)] = None


class MetadataResponsePartition(Message, frozen=True):
    error_code: Int16
    index: Int32
    leader_id: Int32
    leader_epoch: Annotated[Int32, since(7)] = -1
    replica_nodes: tuple[Int32, ...] = ()
    isr_nodes: tuple[Int32, ...] = ()
    offline_replicas: Annotated[tuple[Int32, ...], since(5)] = ()


class MetadataResponseTopic(Message, frozen=True):
    error_code: Int16
    name: Annotated[str | None, nullable(since=12)]
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    is_internal: Annotated[bool, since(1)] = False
    partitions: tuple[MetadataResponsePartition, ...] = ()
    topic_authorized_operations: Annotated[Int32, since(8)] = OPERATIONS_NOT_ASKED


class MetadataResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(3)] = 0
    brokers: tuple[MetadataResponseBroker, ...] = ()
    cluster_id: Annotated[str | None, since(2)] = None
    controller_id: Annotated[Int32, since(1)] = -1
    topics: tuple[MetadataResponseTopic, ...] = ()
    cluster_authorized_operations: Annotated[Int32, since(8, until=10)] = OPERATIONS_NOT_ASKED
    error_code: Annotated[Int16, since(13)] = 0


class AfterPartitions(Message, frozen=True):
    """What follows the partitions of a `MetadataResponseTopic`, for whoever encodes those piece by piece."""

    topic_authorized_operations: Annotated[Int32, since(8)] = OPERATIONS_NOT_ASKED


class AfterTopics(Message, frozen=True):
    """What follows the topics of a `MetadataResponse`."""

    cluster_authorized_operations: Annotated[Int32, since(8, until=10)] = OPERATIONS_NOT_ASKED
    error_code: Annotated[Int16, since(13)] = 0


API: Final = Api(
    key=3,
    name="Metadata",
    versions=range(0, 13 + 1),
    flexible_since=9,
    request=MetadataRequest,
    response=MetadataResponse,
)
