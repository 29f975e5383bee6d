"""AlterPartition: a leader asks for other sets of replicas in sync, each partition by itself."""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.peer.identity import check_identity
from ropewalk.wire.peer.alter_partition import AlterPartitionRequest, AlterPartitionResponse


class Alterations(Protocol):
    async def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Returns when what was changed is committed. Raises where the request as a whole is refused."""


async def handle(
    request: AlterPartitionRequest, caller: Caller, *, alterations: Alterations
) -> AlterPartitionResponse:
    try:
        check_identity(caller, request.node_id)
        return await alterations.alter(request)
    except RopewalkError as error:
        return AlterPartitionResponse(code_for(error), str(error))
