"""AllocateProducerIds: a block of producer ids, which no other broker is ever given."""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.controller.producer_ids import ProducerIdBlock
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.peer.controller_codes import code_for
from ropewalk.kafka.peer.identity import check_identity
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


class Allocations(Protocol):
    async def allocate_producer_ids(self, node_id: NodeId, broker_epoch: int) -> ProducerIdBlock: ...


async def handle(
    request: AllocateProducerIdsRequest, caller: Caller, *, allocations: Allocations
) -> AllocateProducerIdsResponse:
    try:
        check_identity(caller, request.node_id)
        block = await allocations.allocate_producer_ids(NodeId(request.node_id), request.broker_epoch)
    except RopewalkError as error:
        return AllocateProducerIdsResponse(code_for(error), str(error))
    return AllocateProducerIdsResponse(ErrorCode.NONE, None, block.start, block.end - block.start)
