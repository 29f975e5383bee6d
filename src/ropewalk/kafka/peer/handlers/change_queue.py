"""ChangeQueue: a queue is made, changed or deleted by the node that decides, for a door on another one."""

from typing import Protocol

from ropewalk.base.errors import InvalidRequest, QueueExists, RopewalkError
from ropewalk.broker.cluster.mandate import Mandate, mandate
from ropewalk.broker.peers.calls.forward import Sender
from ropewalk.controller.queues import (
    CancelMoveTask,
    ChangeQueue,
    CreateQueue,
    DeleteQueue,
    EndMoveTask,
    QueueCommand,
    StartMoveTask,
)
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.peer.controller_codes import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer import change_queue as wire


class QueueDecisions(Protocol):
    async def decide(self, command: QueueCommand, mandate: Mandate | None) -> int:
        """Where the metadata ends that has it. Raises `NotController` where this node does not decide."""


async def handle(
    request: wire.ChangeQueueRequest, caller: Caller, *, queues: QueueDecisions
) -> wire.ChangeQueueResponse:
    try:
        metadata_offset = await queues.decide(_command(request), _mandate(request, caller))
    except QueueExists as error:
        return wire.ChangeQueueResponse(code_for(error), error.attribute)
    except RopewalkError as error:
        return wire.ChangeQueueResponse(code_for(error), str(error))
    return wire.ChangeQueueResponse(ErrorCode.NONE, None, metadata_offset)


def _mandate(request: wire.ChangeQueueRequest, caller: Caller) -> Mandate | None:
    """As the node found it that the client is connected to."""
    sender = Sender(
        request.principal,
        request.client_id,
        request.host,
        groups=request.groups,
        method=request.method,
        listener=request.listener,
    )
    return mandate(sender, request.operation, caller.peer_id) if request.operation else None


def _command(request: wire.ChangeQueueRequest) -> QueueCommand:
    attributes = {each.name: each.value for each in request.attributes}
    tags = {each.name: each.value for each in request.tags}
    match request.action:
        case wire.CREATE:
            return CreateQueue(
                name=request.name,
                attributes={name: text for name, text in attributes.items() if text is not None},
                tags={name: text for name, text in tags.items() if text is not None},
                owner=request.owner,
                partition_count=request.partition_count,
                topic=request.topic,
                starts=request.starts,
            )
        case wire.CHANGE:
            return ChangeQueue(name=request.name, attributes=attributes, tags=tags)
        case wire.DELETE:
            return DeleteQueue(request.name)
        case wire.START_MOVE:
            rate = request.messages_per_second_max
            return StartMoveTask(
                name=request.name,
                task_id=request.task_id,
                target=request.target,
                messages_per_second_max=None if rate < 0 else rate,
                to_move_count=request.message_count,
            )
        case wire.CANCEL_MOVE:
            return CancelMoveTask(name=request.name, task_id=request.task_id)
        case wire.END_MOVE:
            return EndMoveTask(
                name=request.name,
                task_id=request.task_id,
                status=request.status,
                moved_count=request.message_count,
                reason=request.reason,
            )
        case _:
            raise InvalidRequest(f"{request.action} is nothing that is done to a queue")
