"""QueueTask: what a move task has come to in a partition of a queue that another node leads."""

from ropewalk.base.ids import OwnerId
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.queue_refusals import check
from ropewalk.broker.peers.peers import Lane
from ropewalk.queues.state import TaskShare
from ropewalk.wire.peer import queue_task as wire


def queue_task(queue_id: OwnerId, partition: int) -> Call[TaskShare | None]:
    """The latest task's share; None: no task came there."""

    def understand(response: wire.QueueTaskResponse) -> TaskShare | None:
        check(response.refusal)
        if not response.task_id:
            return None
        return TaskShare(
            bytes(response.task_id),
            response.end_offset,
            response.moved_count,
            response.ending,
            response.reason,
        )

    return call(wire.API, wire.QueueTaskRequest(queue_id, partition), understand, lane=Lane.QUEUES)
