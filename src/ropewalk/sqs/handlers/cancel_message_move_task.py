"""CancelMessageMoveTask: end a move task; what was moved stays moved."""

from typing import ClassVar, Final

from ropewalk.base.errors import MoveTaskOver, UnknownMoveTask
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import RESOURCE_NOT_FOUND, UNSUPPORTED_OPERATION, SqsRefusal
from ropewalk.sqs.handlers.start_message_move_task import find_by_arn
from ropewalk.sqs.move_handles import parse_move_handle
from ropewalk.sqs.shapes import Input, Output

_NO_TASK: Final = "Task does not exist."
_NOT_RUNNING: Final = "Only a task in status RUNNING can be cancelled."


class CancelMessageMoveTaskRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("task_handle",)

    task_handle: str = ""


class CancelMessageMoveTaskResult(Output, frozen=True, kw_only=True):
    approximate_number_of_messages_moved: int


async def handle(
    request: CancelMessageMoveTaskRequest, desk: Desk, caller: Caller
) -> CancelMessageMoveTaskResult:
    handle = parse_move_handle(request.task_handle)
    source = find_by_arn(handle.source_arn, "SourceArn", desk)
    task_id = handle.task()
    if task_id is None:
        raise SqsRefusal(RESOURCE_NOT_FOUND, _NO_TASK)
    try:
        await desk.engine.changes.cancel_move_task(
            source.name, task_id, mandate=caller.mandate("CancelMessageMoveTask")
        )
    except UnknownMoveTask:
        raise SqsRefusal(RESOURCE_NOT_FOUND, _NO_TASK) from None
    except MoveTaskOver:
        raise SqsRefusal(UNSUPPORTED_OPERATION, _NOT_RUNNING) from None
    moved_count = await desk.engine.messages.moved_count(source, task_id)
    return CancelMessageMoveTaskResult(approximate_number_of_messages_moved=moved_count)
