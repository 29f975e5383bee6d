"""InitProducerId: a producer id nobody else has, for an idempotent producer.

Behaviour worth knowing
    Ids come from blocks that the metadata log hands out, so no two nodes and no two lives of a node give the same.
    A producer without transactions that brings an id along (v3) gets a new one all the same, as in Kafka: its
    epoch is the producer's own to raise.
    Transactions are not served; a transactional id is refused with a code that clients do not retry.
"""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import ProducerId
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


class ProducerIds(Protocol):
    async def next(self) -> ProducerId: ...


async def handle(
    request: InitProducerIdRequest, caller: Caller, *, producer_ids: ProducerIds
) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        with caller.hold():
            producer_id = await producer_ids.next()
    except RopewalkError as error:
        return _refused(code_for(error))
    return InitProducerIdResponse(0, ErrorCode.NONE, producer_id, 0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(0, code, -1, -1)
