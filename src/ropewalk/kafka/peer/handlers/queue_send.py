"""QueueSend: append what a front end sends to a partition of a queue that is led here."""

from collections.abc import Sequence

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import OwnerId
from ropewalk.broker.peers.calls.queue_records import of_headers
from ropewalk.broker.peers.calls.queue_refusals import NOTHING, refusal_of
from ropewalk.broker.queues.credits import Find
from ropewalk.kafka.caller import Caller
from ropewalk.queues.messages import Outgoing, Sent
from ropewalk.wire.peer.queue_send import QueueOutgoing, QueueSendRequest, QueueSendResponse, QueueSent


async def handle(request: QueueSendRequest, caller: Caller, *, find: Find) -> QueueSendResponse:
    del caller  # any node of the cluster
    try:
        hosted = find(OwnerId(bytes(request.queue_id)), request.partition)
        outcomes = await hosted.send([_outgoing(each) for each in request.messages])
    except RopewalkError as error:
        return QueueSendResponse(refusal_of(error))
    return QueueSendResponse(NOTHING, _outcomes(outcomes))


def _outgoing(message: QueueOutgoing) -> Outgoing:
    return Outgoing(
        body=bytes(message.body),
        headers=of_headers(message.headers),
        sent_at_ms=message.sent_at_ms,
        group=message.group,
        deduplication_id=message.deduplication_id,
        delay_ms=message.delay_ms,
    )


def _outcomes(outcomes: Sequence[Sent | RopewalkError]) -> tuple[QueueSent, ...]:
    return tuple(
        [
            QueueSent(NOTHING, each.offset, each.is_duplicate)
            if isinstance(each, Sent)
            else QueueSent(refusal_of(each))
            for each in outcomes
        ]
    )
