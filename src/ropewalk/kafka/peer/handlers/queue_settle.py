"""QueueSettle: delete messages, hide them for another time, or take them back uncounted, for a front end.

Behaviour worth knowing
    Deletes and changes are asked in one step, before anything is waited for.
    What is given back is not waited for: nobody needs to know.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import OwnerId
from ropewalk.broker.peers.calls.queue_records import of_handles
from ropewalk.broker.peers.calls.queue_refusals import NOTHING, refusal_of
from ropewalk.broker.queues.credits import Find
from ropewalk.broker.queues.hosted_queue import Asked
from ropewalk.kafka.caller import Caller
from ropewalk.queues.answers import Done
from ropewalk.queues.commands import ChangeVisibility, Delete, Handle, Release, VisibilityChange
from ropewalk.wire.peer.queue_parts import QueueRefusal
from ropewalk.wire.peer.queue_settle import QueueSettleRequest, QueueSettleResponse


async def handle(request: QueueSettleRequest, caller: Caller, *, find: Find) -> QueueSettleResponse:
    del caller  # any node of the cluster
    try:
        hosted = find(OwnerId(bytes(request.queue_id)), request.partition)
        deleting = hosted.ask(Delete(of_handles(request.deletes))) if request.deletes else None
        changes = tuple(
            [
                VisibilityChange(Handle(each.handle.offset, each.handle.attempt), each.visibility_ms)
                for each in request.changes
            ]
        )
        changing = hosted.ask(ChangeVisibility(changes)) if changes else None
        if request.releases:
            hosted.ask(Release(of_handles(request.releases)))
        deleted, changed = await _outcome(deleting), await _outcome(changing)
    except RopewalkError as error:
        return QueueSettleResponse(refusal_of(error))
    return QueueSettleResponse(NOTHING, deleted, changed)


async def _outcome(asked: Asked[Done] | None) -> tuple[QueueRefusal, ...]:
    return () if asked is None else tuple(map(refusal_of, (await asked.answer).refusals))
