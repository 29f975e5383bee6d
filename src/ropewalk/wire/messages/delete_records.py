"""DeleteRecords (key 21): everything below an offset may go; the log starts there.

v2  flexible encoding
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message

HIGH_WATERMARK: Final = -1
"""As an offset: all that can be read at the moment."""


class DeleteRecordsPartition(Message, frozen=True):
    index: Int32
    offset: Int64


class DeleteRecordsTopic(Message, frozen=True):
    name: str
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Message, frozen=True):
    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32


class DeleteRecordsPartitionResult(Message, frozen=True):
    index: Int32
    low_watermark: Int64
    error_code: Int16


class DeleteRecordsTopicResult(Message, frozen=True):
    name: str
    partitions: tuple[DeleteRecordsPartitionResult, ...]


class DeleteRecordsResponse(Message, frozen=True):
    throttle_ms: Int32
    topics: tuple[DeleteRecordsTopicResult, ...]


API: Final = Api(
    key=21,
    name="DeleteRecords",
    versions=range(0, 2 + 1),
    flexible_since=2,
    request=DeleteRecordsRequest,
    response=DeleteRecordsResponse,
)
