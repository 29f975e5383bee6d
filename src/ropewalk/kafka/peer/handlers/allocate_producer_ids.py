"""AllocateProducerIds: a block of producer ids, which no other broker is ever given."""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.peer.identity import check_identity
from ropewalk.wire.peer.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


class Allocations(Protocol):
    async def allocate(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse: ...


async def handle(
    request: AllocateProducerIdsRequest, caller: Caller, *, allocations: Allocations
) -> AllocateProducerIdsResponse:
    try:
        check_identity(caller, request.node_id)
        return await allocations.allocate(request)
    except RopewalkError as error:
        return AllocateProducerIdsResponse(code_for(error), str(error))
