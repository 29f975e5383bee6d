"""OffsetDelete (key 47): a group forgets how far it has read some partitions. There is one version."""

from typing import Final

from ropewalk.wire.api import NEVER_FLEXIBLE, Api
from ropewalk.wire.types import Int16, Int32, Message


class OffsetDeleteRequestPartition(Message, frozen=True):
    index: Int32


class OffsetDeleteRequestTopic(Message, frozen=True):
    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...]


class OffsetDeleteRequest(Message, frozen=True):
    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


class OffsetDeleteResponsePartition(Message, frozen=True):
    index: Int32
    error_code: Int16


class OffsetDeleteResponseTopic(Message, frozen=True):
    name: str
    partitions: tuple[OffsetDeleteResponsePartition, ...]


class OffsetDeleteResponse(Message, frozen=True):
    error_code: Int16
    throttle_ms: Int32
    topics: tuple[OffsetDeleteResponseTopic, ...]


API: Final = Api(
    key=47,
    name="OffsetDelete",
    versions=range(0, 0 + 1),
    flexible_since=NEVER_FLEXIBLE,
    request=OffsetDeleteRequest,
    response=OffsetDeleteResponse,
)
