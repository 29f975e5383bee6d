"""StartMessageMoveTask: move dead letters back to where they came from, or to another queue.

Behaviour worth knowing
    It is answered when the task is a fact of the cluster. Those move who lead the partitions of the dead-letter queue.
"""

from typing import ClassVar, Final

from ropewalk.base.errors import MoveTaskRunning
from ropewalk.metadata.queues import Queue
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import (
    INVALID_PARAMETER_VALUE,
    RESOURCE_NOT_FOUND,
    SqsRefusal,
    invalid,
)
from ropewalk.sqs.move_handles import make_move_handle
from ropewalk.sqs.shapes import Input, Output
from ropewalk.sqs.urls import name_in_arn

PER_SECOND_MAX: Final = 500
_NO_DEAD_LETTER_QUEUE: Final = "Source queue must be configured as a Dead Letter Queue."
_RUNNING: Final = (
    "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
)


class StartMessageMoveTaskRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("source_arn",)

    source_arn: str = ""
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class StartMessageMoveTaskResult(Output, frozen=True, kw_only=True):
    task_handle: str


async def handle(
    request: StartMessageMoveTaskRequest, desk: Desk, caller: Caller
) -> StartMessageMoveTaskResult:
    source = find_by_arn(request.source_arn, "SourceArn", desk)
    target: str | None = None
    if request.destination_arn is not None:
        target = find_by_arn(request.destination_arn, "DestinationArn", desk).name
        desk.target(target)
    per_second = request.max_number_of_messages_per_second
    if per_second is not None and not 1 <= per_second <= PER_SECOND_MAX:
        reason = f"Value must be greater than 0 and less than or equal to {PER_SECOND_MAX}"
        raise invalid("MaxNumberOfMessagesPerSecond", per_second, reason)
    if not desk.engine.facts.sources_of(source.name):
        raise SqsRefusal(INVALID_PARAMETER_VALUE, _NO_DEAD_LETTER_QUEUE)
    totals = await desk.engine.messages.totals(source)
    try:
        task = await desk.engine.changes.start_move_task(
            source.name,
            target=target,
            messages_per_second_max=per_second,
            to_move_count=totals.visible_count,
            mandate=caller.mandate("StartMessageMoveTask"),
        )
    except MoveTaskRunning:
        raise SqsRefusal(INVALID_PARAMETER_VALUE, _RUNNING) from None
    handle = make_move_handle(task.task_id, desk.arn(caller, source.name))
    return StartMessageMoveTaskResult(task_handle=handle)


def find_by_arn(arn: str, parameter: str, desk: Desk) -> Queue:
    """Raises `SqsRefusal`."""
    name = name_in_arn(arn)
    if name is None:
        raise SqsRefusal(
            INVALID_PARAMETER_VALUE,
            "You must use this format to specify the ARN: arn:<partition>:<service>:<region>:<account-id>:<resource-id>",
        )
    queue = desk.engine.facts.get(name)
    if queue is None:
        text = f"The resource that you specified for the {parameter} parameter doesn't exist."
        raise SqsRefusal(RESOURCE_NOT_FOUND, text)
    return queue
