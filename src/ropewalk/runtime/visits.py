"""Tasks for those who asked for something: their failure is told to who waits, and ends nothing else.

`tasks.py` is for what a node cannot do without, `errands.py` for what one node does for another. A page that somebody looks at is neither: if
it fails, whoever asked for it hears so.

What a reader could get wrong
    A task that nobody waits for must be waited for by somebody in the end: `stop` does, and what was raised is then told to the loop.
"""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from ropewalk.base.errors import NodeStopping, Throttled

T = TypeVar("T")


class Visits:
    def __init__(self, *, count_max: int) -> None:
        self._count_max = count_max
        self._tasks: set[asyncio.Task[object]] = set()
        self._is_stopped = False

    def begin(self, name: str, work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
        """Raises `Throttled` where too many are under way."""
        if self._is_stopped or len(self._tasks) >= self._count_max:
            work.close()
            if self._is_stopped:
                raise NodeStopping("the node is shutting down")
            raise Throttled(f"{len(self._tasks)} others are being served; try again in a moment")
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        self._is_stopped = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
