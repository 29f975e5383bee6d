"""TxnOffsetCommit (key 28): offsets of a group that count when the transaction is committed.

v2  committed_leader_epoch
v3  flexible encoding; the member says who it is and which generation it belongs to
v4  errors may say that a transaction can be aborted
v5  the group is added to the transaction by this request itself
v6  topics by id instead of by name
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import UUID_ZERO, Int16, Int32, Int64, Message, Uuid, since, until


class TxnOffsetCommitRequestPartition(Message, frozen=True):
    index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(2)] = -1
    committed_metadata: str | None = ""


class TxnOffsetCommitRequestTopic(Message, frozen=True):
    name: Annotated[str, until(5)] = ""
    topic_id: Annotated[Uuid, since(6)] = UUID_ZERO
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = ()


class TxnOffsetCommitRequest(Message, frozen=True):
    transactional_id: str
    group_id: str
    producer_id: Int64
    producer_epoch: Int16
    generation_id_or_member_epoch: Annotated[Int32, since(3)] = -1
    member_id: Annotated[str, since(3)] = ""
    instance_id: Annotated[str | None, since(3)] = None
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = ()


class TxnOffsetCommitResponsePartition(Message, frozen=True):
    index: Int32
    error_code: Int16


class TxnOffsetCommitResponseTopic(Message, frozen=True):
    name: Annotated[str, until(5)] = ""
    topic_id: Annotated[Uuid, since(6)] = UUID_ZERO
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = ()


class TxnOffsetCommitResponse(Message, frozen=True):
    throttle_ms: Int32
    topics: tuple[TxnOffsetCommitResponseTopic, ...]


API: Final = Api(
    key=28,
    name="TxnOffsetCommit",
    versions=range(0, 6 + 1),
    flexible_since=3,
    request=TxnOffsetCommitRequest,
    response=TxnOffsetCommitResponse,
)
