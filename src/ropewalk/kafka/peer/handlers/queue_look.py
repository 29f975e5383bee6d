"""QueueLook: how a partition of a queue stands, or messages of it, for somebody at another node."""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import OwnerId
from ropewalk.base.ports import Pool
from ropewalk.broker.peers.calls.queue_records import to_record
from ropewalk.broker.peers.calls.queue_refusals import NOTHING, refusal_of
from ropewalk.broker.queues.credits import Find
from ropewalk.broker.queues.near_partition import NearPartition
from ropewalk.kafka.caller import Caller
from ropewalk.queues.messages import Seen
from ropewalk.wire.peer.queue_look import QueueLookRequest, QueueLookResponse, QueueSeen


async def handle(request: QueueLookRequest, caller: Caller, *, find: Find, pool: Pool) -> QueueLookResponse:
    del caller  # any node of the cluster
    try:
        near = NearPartition(find(OwnerId(bytes(request.queue_id)), request.partition), pool)
        if request.offset >= 0:
            return QueueLookResponse(NOTHING, seen=tuple(map(_seen, await near.look_at(request.offset))))
        if request.count_max > 0:
            return QueueLookResponse(NOTHING, seen=tuple(map(_seen, await near.peek(request.count_max))))
        totals = await near.totals()
    except RopewalkError as error:
        return QueueLookResponse(refusal_of(error))
    oldest_ms = totals.oldest_sent_at_ms
    return QueueLookResponse(
        NOTHING,
        totals.visible_count,
        totals.in_flight_count,
        totals.delayed_count,
        -1 if oldest_ms is None else oldest_ms,
    )


def _seen(seen: Seen) -> QueueSeen:
    return QueueSeen(
        to_record(seen.record),
        seen.state,
        seen.receive_count,
        seen.first_received_at_ms,
        seen.attempt,
        seen.until_ms,
        seen.behind_offset,
    )
