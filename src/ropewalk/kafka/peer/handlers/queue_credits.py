"""QueueCredits: receives that a front end leaves here, and those it takes back. Answered at once."""

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.base.ids import OwnerId
from ropewalk.broker.queues.credits import Credits
from ropewalk.kafka.caller import Caller, Disconnect
from ropewalk.queues.commands import Receive
from ropewalk.queues.messages import Credit
from ropewalk.wire.peer.queue_credits import QueueCredit, QueueCreditsRequest, QueueCreditsResponse


async def handle(request: QueueCreditsRequest, caller: Caller, *, credits: Credits) -> QueueCreditsResponse:
    session_id = bytes(request.session_id)
    try:
        if caller.peer_id is None:
            raise InvalidRequest("only a node of the cluster leaves receives here")
        credits.leave(caller.peer_id, session_id, map(_credit, request.credits))
    except RopewalkError as error:  # the front end begins anew, with less
        credits.end(session_id)
        raise Disconnect(str(error)) from error
    credits.withdraw(session_id, request.withdrawn)
    return QueueCreditsResponse()


def _credit(credit: QueueCredit) -> Credit:
    return Credit(
        credit.token,
        OwnerId(bytes(credit.queue_id)),
        credit.partition,
        Receive(credit.count_max, credit.visibility_ms, credit.wait_ms, bytes(credit.request_id)),
    )
