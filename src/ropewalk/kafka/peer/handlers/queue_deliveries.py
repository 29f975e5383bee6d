"""QueueDeliveries: tell a front end what has come of the receives that it left here; waits until something has.

Behaviour worth knowing
    When the connection is lost while this waits, the front end is taken for gone.
"""

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.broker.peers.calls.queue_records import to_delivered
from ropewalk.broker.peers.calls.queue_refusals import NOTHING, refusal_of
from ropewalk.broker.queues.credits import Credits
from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.queues.messages import Delivery
from ropewalk.wire.peer.queue_deliveries import (
    QueueDeliveriesRequest,
    QueueDeliveriesResponse,
    QueueDelivery,
)


class _Session:
    """Hears that the front end's connection is lost."""

    def __init__(self, credits: Credits, session_id: bytes) -> None:
        self._credits = credits
        self._session_id = session_id

    def hurry(self) -> None:
        self._credits.end(self._session_id)

    def abandon(self) -> None:
        self._credits.end(self._session_id)


async def handle(
    request: QueueDeliveriesRequest, caller: Caller, *, credits: Credits
) -> QueueDeliveriesResponse:
    session_id = bytes(request.session_id)
    try:
        if caller.peer_id is None:
            raise InvalidRequest("only a node of the cluster takes deliveries")
        with caller.hold_while(_Session(credits, session_id)):
            deliveries = await credits.poll(
                caller.peer_id, session_id, taken=request.taken, wait_ms=request.wait_ms
            )
    except RopewalkError as error:
        raise Disconnect(str(error)) from error
    return QueueDeliveriesResponse(tuple(map(_delivery, deliveries)))


def _delivery(delivery: Delivery) -> QueueDelivery:
    if isinstance(delivery.outcome, RopewalkError):
        return QueueDelivery(delivery.token, delivery.queue_id, refusal_of(delivery.outcome))
    return QueueDelivery(
        delivery.token, delivery.queue_id, NOTHING, tuple(map(to_delivered, delivery.outcome))
    )
