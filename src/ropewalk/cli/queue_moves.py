"""`ropewalk queue redrive`, `move` and `moves`: dead letters back to where they came from, or to another queue, by the server's own tasks."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ropewalk.cli.completion import complete_queue
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, chosen_output
from ropewalk.cli.output import print_json, print_table
from ropewalk.cli.queue_options import EndpointOption, Name, Place, with_queues

if TYPE_CHECKING:
    from ropewalk.client.queues.administration import MoveTask, Queues

RateOption = Annotated[
    int | None, typer.Option("--rate", metavar="N", min=1, max=500, help="At most so many a second.")
]
NoWaitOption = Annotated[
    bool, typer.Option("--no-wait", help="Return when it has begun, not when it is done.")
]
_LOOK_S: Final = 0.5
"""Between two looks at a task that runs: people see it move, and a queue of thousands takes longer."""
_RUNNING: Final = frozenset({"RUNNING", "CANCELLING"})


@guarded
def redrive(
    ctx: typer.Context,
    name: Name,
    rate: RateOption = None,
    no_wait: NoWaitOption = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="End the task that is under way.")] = False,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Move dead letters back, each to the queue that it came from."""
    place = Place(ctx, endpoint, bootstrap)
    if cancel:
        task = with_queues(place, lambda queues: _cancel(queues, name))
    else:
        task = with_queues(place, lambda queues: _move(queues, name, None, rate, waits=not no_wait))
    _tell(name, task, chosen_output(ctx, output))


@guarded
def move(
    ctx: typer.Context,
    name: Name,
    target: Annotated[
        str, typer.Option("--to", metavar="TARGET", help="Where to.", autocompletion=complete_queue)
    ],
    rate: RateOption = None,
    no_wait: NoWaitOption = False,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Move the messages of a dead-letter queue to the queue TARGET."""
    place = Place(ctx, endpoint, bootstrap)
    task = with_queues(place, lambda queues: _move(queues, name, target, rate, waits=not no_wait))
    _tell(name, task, chosen_output(ctx, output))


@guarded
def moves(
    ctx: typer.Context,
    name: Name,
    endpoint: EndpointOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """List the latest tasks that moved messages of a dead-letter queue, the last one first."""
    tasks = with_queues(Place(ctx, endpoint, bootstrap), lambda queues: queues.move_tasks(name))
    if chosen_output(ctx, output) is Output.JSON:
        print_json([_object(name, task) for task in tasks])
        return
    rows = [
        (
            task.status.lower(),
            task.moved,
            task.to_move,
            task.target or "where each came from",
            "-" if task.started_at_ms is None else _moment(task.started_at_ms),
            task.failure or "-",
        )
        for task in tasks
    ]
    print_table(("STATUS", "MOVED", "TO MOVE", "TO", "STARTED", "FAILURE"), rows)


async def _move(
    queues: "Queues", name: str, target: str | None, rate: int | None, *, waits: bool
) -> "MoveTask | None":
    from ropewalk.cli.progress import progress
    from ropewalk.runtime.clock import SystemClock

    await queues.start_moving(name, target, per_second_max=rate)
    task = await _latest(queues, name)
    with progress(SystemClock(), f"moving messages of {name}") as bar:
        while waits and task is not None and task.status in _RUNNING:
            bar.show(task.moved / max(task.to_move or 0, task.moved, 1), f"{task.moved} of {task.to_move}")
            await asyncio.sleep(_LOOK_S)
            task = await _latest(queues, name)
    return task


async def _cancel(queues: "Queues", name: str) -> "MoveTask | None":
    task = await _latest(queues, name)
    if task is None or task.handle is None:
        raise Failed(f"no task moves messages of {name} at the moment")
    await queues.cancel_moving(task.handle)
    return await _latest(queues, name)


async def _latest(queues: "Queues", name: str) -> "MoveTask | None":
    tasks = await queues.move_tasks(name)
    return tasks[0] if tasks else None


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")


def _object(name: str, task: "MoveTask") -> dict[str, object]:
    return {
        "queue": name,
        "status": task.status.lower(),
        "moved": task.moved,
        "to_move": task.to_move,
        "to": task.target,
        "rate": task.per_second_max,
        "started_at_ms": task.started_at_ms,
        "failure": task.failure,
    }


def _tell(name: str, task: "MoveTask | None", output: Output) -> None:
    if task is None:
        raise Failed(f"the server knows of no task that moves messages of {name}")
    if output is Output.JSON:
        print_json(_object(name, task))
    else:
        print_table(
            ("QUEUE", "STATUS", "MOVED", "TO MOVE"), [(name, task.status.lower(), task.moved, task.to_move)]
        )
    if task.status == "FAILED":
        raise Failed(f"the task ended after {task.moved} messages: {task.failure or 'no reason was given'}")
