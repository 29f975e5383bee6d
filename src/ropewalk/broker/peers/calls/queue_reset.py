"""QueueReset: purge or rewind a partition of a queue that another node leads."""

from ropewalk.base.ids import OwnerId
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.queue_refusals import check
from ropewalk.broker.peers.peers import Lane
from ropewalk.wire.peer import queue_reset as wire


def queue_reset(queue_id: OwnerId, partition: int, *, rewind_to_ms: int | None = None) -> Call[None]:
    """Without a time it is purged."""
    request = wire.QueueResetRequest(queue_id, partition, -1 if rewind_to_ms is None else rewind_to_ms)
    return call(wire.API, request, lambda response: check(response.refusal), lane=Lane.QUEUES)


def may_purge(queue_id: OwnerId, partition: int) -> Call[None]:
    """Nothing is done; raises what a purge is refused with."""
    request = wire.QueueResetRequest(queue_id, partition, -1, only_asks=True)
    return call(wire.API, request, lambda response: check(response.refusal), lane=Lane.QUEUES)
