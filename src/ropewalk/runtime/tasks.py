"""Background tasks under one supervisor.

Nobody calls `create_task` bare: a task whose failure nobody sees is a feature that has silently
stopped. Here the first failure is kept, reported once, and ends the node.

What a reader could get wrong
    What is started here runs until it is cancelled, unless it is said to be errands. A task that returns has stopped as
    surely as one that raises, and is reported like it.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import TypeVar

from ropewalk.base.errors import StorageFailed

T = TypeVar("T")


class TaskReturned(Exception):
    """Work that goes on for as long as the node does has come to an end by itself: a bug."""


class Supervisor:
    """Starts tasks by name; `on_failure` hears of the first one that ends uncancelled, with an error or without."""

    def __init__(
        self, on_failure: Callable[[str, BaseException], None], *, are_errands: bool = False
    ) -> None:
        """`are_errands`: the tasks come to an end by themselves."""
        self._on_failure = on_failure
        self._are_errands = are_errands
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping = False

    def start(self, name: str, work: Coroutine[object, object, None]) -> None:
        assert name not in self._tasks, f"task {name} runs already"
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(self._on_done)

    async def stop(self, *, first: Collection[str] = ()) -> None:
        """Cancel everything and wait until it has ended: these first, which need some of the others to come to their end."""
        self._stopping = True
        await _cancel([task for name, task in self._tasks.items() if name in first])
        await _cancel(list(self._tasks.values()))

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task.get_name(), None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None and not self._are_errands:
            error = TaskReturned(f"{task.get_name()} has ended by itself")
        if error is not None and not self._stopping:
            self._stopping = True
            self._on_failure(task.get_name(), error)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def unless(failed: "asyncio.Future[BaseException]", work: Coroutine[object, object, T]) -> T:
    """What `work` answers, unless background work fails first: then `StorageFailed`, and `work` is cancelled.

    For a start: what it waits for may never come once the work behind it has ended.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        waits: list[asyncio.Future[T] | asyncio.Future[BaseException]] = [task, failed]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not task.done():
            task.cancel()
    if failed.done():
        await asyncio.gather(task, return_exceptions=True)
        raise StorageFailed(f"the node failed while it was starting: {failed.result()!r}")
    return await task
