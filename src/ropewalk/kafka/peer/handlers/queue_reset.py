"""QueueReset: purge or rewind a partition of a queue, for somebody at another node."""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import OwnerId
from ropewalk.base.ports import Pool
from ropewalk.broker.peers.calls.queue_refusals import NOTHING, refusal_of
from ropewalk.broker.queues.credits import Find
from ropewalk.broker.queues.near_partition import NearPartition
from ropewalk.kafka.caller import Caller
from ropewalk.wire.peer.queue_reset import QueueResetRequest, QueueResetResponse


async def handle(request: QueueResetRequest, caller: Caller, *, find: Find, pool: Pool) -> QueueResetResponse:
    del caller  # any node of the cluster
    try:
        near = NearPartition(find(OwnerId(bytes(request.queue_id)), request.partition), pool)
        if request.only_asks:
            await near.check_may_purge()
        elif request.rewind_to_ms >= 0:
            await near.rewind(request.rewind_to_ms)
        else:
            await near.purge()
    except RopewalkError as error:
        return QueueResetResponse(refusal_of(error))
    return QueueResetResponse(NOTHING)
