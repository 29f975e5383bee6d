"""AddOffsetsToTxn (key 25): a producer says that its transaction will commit offsets of a group.

v1  nothing of its own
v2  errors may say that the producer was fenced
v3  flexible encoding
v4  errors may say that a transaction can be aborted
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message


class AddOffsetsToTxnRequest(Message, frozen=True):
    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    group_id: str


class AddOffsetsToTxnResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16


API: Final = Api(
    key=25,
    name="AddOffsetsToTxn",
    versions=range(0, 4 + 1),
    flexible_since=3,
    request=AddOffsetsToTxnRequest,
    response=AddOffsetsToTxnResponse,
)
