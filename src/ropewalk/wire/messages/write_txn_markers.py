"""WriteTxnMarkers (key 27): end transactions in partitions. From a coordinator to leaders, or an administrator's abort.

v1  flexible encoding
v2  which kind of transaction it was: one of the second kind has its own epoch, and its marker carries the next
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Int64, Message, since


class WritableTxnMarkerTopic(Message, frozen=True):
    name: str
    partition_indexes: tuple[Int32, ...]


class WritableTxnMarker(Message, frozen=True):
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: bool
    """Whether it was committed."""
    topics: tuple[WritableTxnMarkerTopic, ...]
    coordinator_epoch: Int32
    transaction_version: Annotated[Int8, since(2)] = 0


class WriteTxnMarkersRequest(Message, frozen=True):
    markers: tuple[WritableTxnMarker, ...]


class WritableTxnMarkerPartitionResult(Message, frozen=True):
    index: Int32
    error_code: Int16


class WritableTxnMarkerTopicResult(Message, frozen=True):
    name: str
    partitions: tuple[WritableTxnMarkerPartitionResult, ...]


class WritableTxnMarkerResult(Message, frozen=True):
    producer_id: Int64
    topics: tuple[WritableTxnMarkerTopicResult, ...]


class WriteTxnMarkersResponse(Message, frozen=True):
    markers: tuple[WritableTxnMarkerResult, ...]


API: Final = Api(
    key=27,
    name="WriteTxnMarkers",
    versions=range(1, 2 + 1),
    flexible_since=1,
    request=WriteTxnMarkersRequest,
    response=WriteTxnMarkersResponse,
)
