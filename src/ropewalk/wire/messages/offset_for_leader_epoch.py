"""OffsetForLeaderEpoch (key 23): where an epoch ended, so that a reader can tell whether the log was cut behind it.

v2  current_leader_epoch, for fencing
v3  replica_id
v4  flexible encoding
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message, since


class OffsetForLeaderPartition(Message, frozen=True):
    index: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(Message, frozen=True):
    name: str
    partitions: tuple[OffsetForLeaderPartition, ...]


class OffsetForLeaderEpochRequest(Message, frozen=True):
    replica_id: Annotated[Int32, since(3)] = -2
    topics: tuple[OffsetForLeaderTopic, ...] = ()


class EpochEndOffset(Message, frozen=True):
    error_code: Int16
    index: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Message, frozen=True):
    name: str
    partitions: tuple[EpochEndOffset, ...]


class OffsetForLeaderEpochResponse(Message, frozen=True):
    throttle_ms: Int32
    topics: tuple[OffsetForLeaderTopicResult, ...]


API: Final = Api(
    key=23,
    name="OffsetForLeaderEpoch",
    versions=range(2, 4 + 1),
    flexible_since=4,
    request=OffsetForLeaderEpochRequest,
    response=OffsetForLeaderEpochResponse,
)
