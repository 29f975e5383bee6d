"""ListOffsets (key 2): the offset that belongs to a timestamp, or to one of the sentinels below.

v2  isolation_level
v4  leader epochs
v6  flexible encoding
v7  MAX_TIMESTAMP
v8  EARLIEST_LOCAL
v9  LATEST_TIERED
v10 timeout_ms, for answers that must be looked up in remote storage
v11 EARLIEST_PENDING_UPLOAD
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Int64, Message, since

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

ANY_COPY: Final = -2
"""The replica id of tools that ask about the copy at hand, whoever leads: it is told to its end, committed or not."""


class ListOffsetsPartition(Message, frozen=True):
    index: Int32
    current_leader_epoch: Annotated[Int32, since(4)] = -1
    timestamp: Int64 = 0


class ListOffsetsTopic(Message, frozen=True):
    name: str
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Message, frozen=True):
    replica_id: Int32
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: tuple[ListOffsetsTopic, ...] = ()
    timeout_ms: Annotated[Int32, since(10)] = 0


class ListOffsetsPartitionResponse(Message, frozen=True):
    index: Int32
    error_code: Int16
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListOffsetsTopicResponse(Message, frozen=True):
    name: str
    partitions: tuple[ListOffsetsPartitionResponse, ...]


class ListOffsetsResponse(Message, frozen=True):
    throttle_ms: Annotated[Int32, since(2)] = 0
    topics: tuple[ListOffsetsTopicResponse, ...] = ()


API: Final = Api(
    key=2,
    name="ListOffsets",
    versions=range(1, 11 + 1),
    flexible_since=6,
    request=ListOffsetsRequest,
    response=ListOffsetsResponse,
)
