"""OffsetCommit (key 8): a group, or an administrator in its name, stores how far it has read.

v3  throttle_ms in the response
v5  retention_time_ms is gone: the broker's setting decides
v6  committed_leader_epoch
v7  instance_id, for static members
v8  flexible encoding
v9  members of groups with member epochs may use it
v10 topics by id instead of by name
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import UUID_ZERO, Int16, Int32, Int64, Message, Uuid, since, until


class OffsetCommitRequestPartition(Message, frozen=True):
    index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(6)] = -1
    committed_metadata: str | None = ""


class OffsetCommitRequestTopic(Message, frozen=True):
    name: Annotated[str, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()


class OffsetCommitRequest(Message, frozen=True):
    group_id: str
    generation_id_or_member_epoch: Int32 = -1
    member_id: str = ""
    instance_id: Annotated[str | None, since(7)] = None
    retention_time_ms: Annotated[Int64, until(4)] = -1
    topics: tuple[OffsetCommitRequestTopic, ...] = ()


class OffsetCommitResponsePartition(Message, frozen=True):
    index: Int32
    error_code: Int16


class OffsetCommitResponseTopic(Message, frozen=True):
    name: Annotated[str, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()


class OffsetCommitResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(3)] = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()


API: Final = Api(
    key=8,
    name="OffsetCommit",
    versions=range(2, 10 + 1),
    flexible_since=8,
    request=OffsetCommitRequest,
    response=OffsetCommitResponse,
)
