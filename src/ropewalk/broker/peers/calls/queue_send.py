"""QueueSend: messages for a partition of a queue that another node leads."""

from collections.abc import Sequence

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import OwnerId
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.queue_records import to_headers
from ropewalk.broker.peers.calls.queue_refusals import check, error_of
from ropewalk.broker.peers.peers import Lane
from ropewalk.queues.messages import Outgoing, Sent
from ropewalk.wire.peer import queue_send as wire


def queue_send(
    queue_id: OwnerId, partition: int, messages: Sequence[Outgoing]
) -> Call[list[Sent | RopewalkError]]:
    """An outcome for each. Raises what all of them are refused with."""
    request = wire.QueueSendRequest(queue_id, partition, tuple([_outgoing(each) for each in messages]))

    def understand(response: wire.QueueSendResponse) -> list[Sent | RopewalkError]:
        check(response.refusal)
        return [
            error_of(each.refusal) or Sent(partition, each.offset, each.is_duplicate)
            for each in response.outcomes
        ]

    return call(wire.API, request, understand, lane=Lane.QUEUES)


def _outgoing(message: Outgoing) -> wire.QueueOutgoing:
    return wire.QueueOutgoing(
        message.body,
        to_headers(message.headers),
        message.sent_at_ms,
        message.group,
        message.deduplication_id,
        message.delay_ms,
    )
