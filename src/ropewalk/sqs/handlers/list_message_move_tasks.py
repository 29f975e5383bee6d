"""ListMessageMoveTasks: the latest move tasks of a dead-letter queue, the last one first.

Behaviour worth knowing
    How many a task that runs has moved is asked of those who move; one who cannot be asked counts for nothing at the moment.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

from ropewalk.metadata.queues import RUNNING, Queue
from ropewalk.metadata.queues import MoveTask as Task
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.errors import invalid
from ropewalk.sqs.handlers.start_message_move_task import find_by_arn
from ropewalk.sqs.move_handles import make_move_handle
from ropewalk.sqs.shapes import Flat, Input, Output

RESULTS_MAX: Final = 10


class ListMessageMoveTasksRequest(Input, frozen=True, kw_only=True):
    REQUIRED: ClassVar[tuple[str, ...]] = ("source_arn",)

    source_arn: str = ""
    max_results: int | None = None


class MoveTask(Output, frozen=True, kw_only=True):
    task_handle: str | None = None
    """Only while it runs."""
    status: str
    source_arn: str
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None
    approximate_number_of_messages_moved: int
    approximate_number_of_messages_to_move: int | None = None
    failure_reason: str | None = None
    started_timestamp: int


class ListMessageMoveTasksResult(Output, frozen=True, kw_only=True):
    results: Annotated[Sequence[MoveTask], Flat("ListMessageMoveTasksResultEntry")]


async def handle(
    request: ListMessageMoveTasksRequest, desk: Desk, caller: Caller
) -> ListMessageMoveTasksResult:
    count_max = request.max_results
    if count_max is not None and not 1 <= count_max <= RESULTS_MAX:
        raise invalid("MaxResults", count_max, f"Value for parameter must be between 1 and {RESULTS_MAX}.")
    source = find_by_arn(request.source_arn, "SourceArn", desk)
    latest = desk.engine.facts.moves_of(source.queue_id)[::-1][: count_max or 1]
    return ListMessageMoveTasksResult(results=[await _told(task, source, desk, caller) for task in latest])


async def _told(task: Task, source: Queue, desk: Desk, caller: Caller) -> MoveTask:
    arn = desk.arn(caller, source.name)
    moved_count = task.moved_count
    if task.ended_at_ms is None:
        moved_count = await desk.engine.messages.moved_count(source, task.task_id)
    return MoveTask(
        task_handle=make_move_handle(task.task_id, arn) if task.status == RUNNING else None,
        status=task.status,
        source_arn=arn,
        destination_arn=None if task.target is None else desk.arn(caller, task.target),
        max_number_of_messages_per_second=task.messages_per_second_max,
        approximate_number_of_messages_moved=moved_count,
        approximate_number_of_messages_to_move=task.to_move_count,
        failure_reason=task.reason,
        started_timestamp=task.started_at_ms,
    )
