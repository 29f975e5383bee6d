"""InitProducerId: a producer id and an epoch, for an idempotent producer or for one that holds a transactional id.

Behaviour worth knowing
    Ids come from blocks that the metadata log hands out, so no two nodes and no two lives of a node give the same.
    A producer without transactions that brings an id along (v3) gets a new one all the same, as in Kafka: its
    epoch is the producer's own to raise.
    With a transactional id whoever held it before is fenced. If it has left a transaction open, that is aborted first: the answer
    waits for it a little, and then is CONCURRENT_TRANSACTIONS, upon which clients ask again.
"""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import ProducerId
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.fencing import code_for_producer
from ropewalk.transactions.answers import ProducerInitialised
from ropewalk.transactions.commands import InitProducer
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.init_producer_id import API, InitProducerIdRequest, InitProducerIdResponse


class ProducerIds(Protocol):
    async def next(self) -> ProducerId: ...


class Transactions(Protocol):
    async def init_producer(self, command: InitProducer) -> ProducerInitialised: ...


async def handle(
    request: InitProducerIdRequest, caller: Caller, *, producer_ids: ProducerIds, transactions: Transactions
) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        return await _transactional(request, request.transactional_id, caller, transactions)
    try:
        with caller.hold():
            producer_id = await producer_ids.next()
    except RopewalkError as error:
        return _refused(code_for(error))
    return InitProducerIdResponse(0, ErrorCode.NONE, producer_id, 0)


async def _transactional(
    request: InitProducerIdRequest, transactional_id: str, caller: Caller, transactions: Transactions
) -> InitProducerIdResponse:
    command = InitProducer(
        transactional_id, request.transaction_timeout_ms, request.producer_id, request.producer_epoch
    )
    try:
        with caller.hold():
            producer = await transactions.init_producer(command)
    except RopewalkError as error:
        return _refused(code_for_producer(error, API.key, caller.version))
    return InitProducerIdResponse(0, ErrorCode.NONE, producer.producer_id, producer.producer_epoch)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(0, code, -1, -1)
