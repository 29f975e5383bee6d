"""EndTxn: commit or abort.

Behaviour worth knowing
    The answer comes when the decision is committed. The markers that carry it out follow: whoever reads committed records sees them
    a moment later.
    From v5 on the producer goes on with another epoch, so that nothing it sent before can come into its next transaction.
"""

from typing import Final, Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.fencing import code_for_producer
from ropewalk.transactions.answers import Ended
from ropewalk.transactions.commands import EndTransaction
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.end_txn import API, EndTxnRequest, EndTxnResponse

_BUMPS_SINCE: Final = 5


class Transactions(Protocol):
    async def end(self, command: EndTransaction) -> Ended: ...


async def handle(request: EndTxnRequest, caller: Caller, *, transactions: Transactions) -> EndTxnResponse:
    command = EndTransaction(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        committed=request.committed,
        bumps_epoch=caller.version >= _BUMPS_SINCE,
    )
    try:
        with caller.hold():
            ended = await transactions.end(command)
    except RopewalkError as error:
        return EndTxnResponse(0, code_for_producer(error, API.key, caller.version))
    return EndTxnResponse(0, ErrorCode.NONE, ended.producer_id, ended.producer_epoch)
