"""QueueCredits and QueueDeliveries: receives that are left with another node, and what comes of them."""

from collections.abc import Sequence

from ropewalk.base.ids import OwnerId
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.queue_records import of_delivered
from ropewalk.broker.peers.calls.queue_refusals import error_of
from ropewalk.broker.peers.peers import Lane
from ropewalk.queues.messages import Credit, Delivery
from ropewalk.wire.peer import queue_credits, queue_deliveries


def leave_credits(session_id: bytes, credits: Sequence[Credit], withdrawn: Sequence[int]) -> Call[None]:
    request = queue_credits.QueueCreditsRequest(
        session_id,
        tuple(
            [
                queue_credits.QueueCredit(
                    each.token,
                    each.queue_id,
                    each.partition,
                    each.receive.count_max,
                    each.receive.visibility_ms,
                    each.receive.wait_ms,
                    each.receive.request_id,
                )
                for each in credits
            ]
        ),
        tuple(withdrawn),
    )
    return call(queue_credits.API, request, lambda _: None, lane=Lane.QUEUES)


def take_deliveries(session_id: bytes, *, taken: int, wait_ms: int) -> Call[list[Delivery]]:
    request = queue_deliveries.QueueDeliveriesRequest(session_id, taken, wait_ms)

    def understand(response: queue_deliveries.QueueDeliveriesResponse) -> list[Delivery]:
        return [
            Delivery(
                each.token,
                OwnerId(bytes(each.queue_id)),
                error_of(each.refusal) or tuple(map(of_delivered, each.messages)),
            )
            for each in response.deliveries
        ]

    return call(queue_deliveries.API, request, understand, lane=Lane.QUEUE_DELIVERIES)
