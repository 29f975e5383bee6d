"""EndTxn (key 26): commit or abort what a transaction has written.

v2  errors may say that the producer was fenced
v3  flexible encoding
v4  errors may say that a transaction can be aborted
v5  every transaction has an epoch of its own: the answer carries the id and epoch for the next
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message, since


class EndTxnRequest(Message, frozen=True):
    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    committed: bool


class EndTxnResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    producer_id: Annotated[Int64, since(5)] = -1
    producer_epoch: Annotated[Int16, since(5)] = -1


API: Final = Api(
    key=26,
    name="EndTxn",
    versions=range(0, 5 + 1),
    flexible_since=3,
    request=EndTxnRequest,
    response=EndTxnResponse,
)
