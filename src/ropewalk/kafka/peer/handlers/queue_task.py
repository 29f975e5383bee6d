"""QueueTask: what a move task has come to in a partition that is led here, for whoever ends the task or is asked about it."""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import OwnerId
from ropewalk.broker.peers.calls.queue_refusals import NOTHING, refusal_of
from ropewalk.broker.queues.credits import Find
from ropewalk.broker.queues.tasks import share_of
from ropewalk.kafka.caller import Caller
from ropewalk.wire.peer.queue_task import QueueTaskRequest, QueueTaskResponse


async def handle(request: QueueTaskRequest, caller: Caller, *, find: Find) -> QueueTaskResponse:
    del caller  # any node of the cluster
    try:
        share = share_of(find(OwnerId(bytes(request.queue_id)), request.partition))
    except RopewalkError as error:
        return QueueTaskResponse(refusal_of(error))
    if share is None:
        return QueueTaskResponse(NOTHING)
    return QueueTaskResponse(
        NOTHING, share.task_id, share.end_offset, share.moved_count, share.ending, share.reason
    )
