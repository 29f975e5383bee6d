"""OffsetFetch (key 9): how far groups have read, as they committed it.

v2  topics may be null, which means all; an error for the whole response
v3  throttle_ms in the response
v5  committed_leader_epoch
v6  flexible encoding
v7  require_stable: wait for transactions that are about to commit offsets
v8  many groups at once: `groups` instead of `group_id` and `topics`, in both directions
v9  member_id and member_epoch
v10 topics by id instead of by name
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import UUID_ZERO, Int16, Int32, Int64, Message, Uuid, nullable, since, until


class OffsetFetchRequestTopic(Message, frozen=True):
    name: str
    partition_indexes: tuple[Int32, ...]


class OffsetFetchRequestTopics(Message, frozen=True):
    name: Annotated[str, since(8, until=9)] = ""
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    partition_indexes: tuple[Int32, ...] = ()


class OffsetFetchRequestGroup(Message, frozen=True):
    group_id: str
    member_id: Annotated[str | None, since(9)] = None
    member_epoch: Annotated[Int32, since(9)] = -1
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()


class OffsetFetchRequest(Message, frozen=True):
    group_id: Annotated[str, until(7)] = ""
    topics: Annotated[tuple[OffsetFetchRequestTopic, ...] | None, until(7), nullable(since=2)] = ()
    groups: Annotated[tuple[OffsetFetchRequestGroup, ...], since(8)] = ()
    require_stable: Annotated[bool, since(7)] = False


class OffsetFetchResponsePartition(Message, frozen=True):
    index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(5, until=7)] = -1
    metadata: str | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopic(Message, frozen=True):
    name: str
    partitions: tuple[OffsetFetchResponsePartition, ...]


class OffsetFetchResponsePartitions(Message, frozen=True):
    index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = -1
    metadata: str | None = ""
    error_code: Int16 = 0


class OffsetFetchResponseTopics(Message, frozen=True):
    name: Annotated[str, since(8, until=9)] = ""
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()


class OffsetFetchResponseGroup(Message, frozen=True):
    group_id: str
    topics: tuple[OffsetFetchResponseTopics, ...]
    error_code: Int16 = 0


class OffsetFetchResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(3)] = 0
    topics: Annotated[tuple[OffsetFetchResponseTopic, ...], until(7)] = ()
    error_code: Annotated[Int16, since(2, until=7)] = 0
    groups: Annotated[tuple[OffsetFetchResponseGroup, ...], since(8)] = ()


API: Final = Api(
    key=9,
    name="OffsetFetch",
    versions=range(1, 10 + 1),
    flexible_since=6,
    request=OffsetFetchRequest,
    response=OffsetFetchResponse,
)
