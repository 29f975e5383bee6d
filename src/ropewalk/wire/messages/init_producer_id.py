"""InitProducerId (key 22): a producer id and epoch, for idempotent and for transactional producers.

v2  flexible encoding
v3  a producer may bring the id and epoch it had
v4  errors may say that the producer was fenced
v5  errors may say that a transaction can be aborted

Version 6 (two-phase commit) is not stable in Kafka 4.4 and not understood here.
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Int64, Message, since


class InitProducerIdRequest(Message, frozen=True):
    transactional_id: str | None
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1


class InitProducerIdResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0


API: Final = Api(
    key=22,
    name="InitProducerId",
    versions=range(0, 5 + 1),
    flexible_since=2,
    request=InitProducerIdRequest,
    response=InitProducerIdResponse,
)
