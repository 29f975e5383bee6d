"""QueueLook: how a partition of a queue stands that another node leads, and messages of it."""

from ropewalk.base.ids import OwnerId
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.queue_records import of_record
from ropewalk.broker.peers.calls.queue_refusals import check
from ropewalk.broker.peers.peers import Lane
from ropewalk.queues.messages import Seen, Totals
from ropewalk.wire.peer import queue_look as wire


def queue_totals(queue_id: OwnerId, partition: int) -> Call[Totals]:
    def understand(response: wire.QueueLookResponse) -> Totals:
        check(response.refusal)
        oldest_ms = response.oldest_sent_at_ms
        return Totals(
            response.visible_count,
            response.in_flight_count,
            response.delayed_count,
            oldest_ms if oldest_ms >= 0 else None,
        )

    return call(wire.API, wire.QueueLookRequest(queue_id, partition), understand, lane=Lane.QUEUES)


def queue_peek(
    queue_id: OwnerId, partition: int, *, count_max: int = 0, offset: int = -1
) -> Call[list[Seen]]:
    """The first unsettled ones, or the one at an offset."""

    def understand(response: wire.QueueLookResponse) -> list[Seen]:
        check(response.refusal)
        return [_seen(partition, each) for each in response.seen]

    request = wire.QueueLookRequest(queue_id, partition, count_max, offset)
    return call(wire.API, request, understand, lane=Lane.QUEUES)


def _seen(partition: int, seen: wire.QueueSeen) -> Seen:
    return Seen(
        partition,
        of_record(seen.record),
        seen.state,
        seen.receive_count,
        seen.first_received_at_ms,
        seen.attempt,
        seen.until_ms,
        seen.behind_offset,
    )
