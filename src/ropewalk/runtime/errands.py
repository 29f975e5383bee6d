"""Work for those who are no task themselves.

A request handler runs without one (`steps.py`), so it can wait for a future and for nothing else: no timeout, no task group. What
needs these is begun here, and the handler waits for its outcome.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from ropewalk.base.errors import NodeStopping, RopewalkError, Throttled
from ropewalk.runtime.bell import Bell

T = TypeVar("T")


class Errands:
    def __init__(self, *, count_max: int) -> None:
        self._count_max = count_max
        self._count = 0
        self._waiting: deque[tuple[Coroutine[Any, Any, Any], asyncio.Future[Any]]] = deque()
        self._wake = Bell()
        self._is_stopped = False

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[T]":
        """The future is what `work` comes to. Raises `Throttled` where too much is under way."""
        if self._is_stopped or self._count >= self._count_max:
            work.close()
            if self._is_stopped:
                raise _stopping()
            raise Throttled(f"{self._count} requests to other nodes are under way; try again later")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_forget)
        self._count += 1
        self._waiting.append((work, done))
        self._wake.ring()
        return done

    async def run(self) -> None:
        """Carry out what is begun, until cancelled: then whoever waits hears that the node stops."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    while self._waiting:
                        group.create_task(self._carry_out(*self._waiting.popleft()))
                    await self._wake.wait()
        finally:
            self._is_stopped = True
            for work, done in self._waiting:
                work.close()
                done.set_exception(_stopping())
            self._waiting.clear()

    async def _carry_out(self, work: Coroutine[Any, Any, T], done: "asyncio.Future[T]") -> None:
        try:
            result = await work
        except RopewalkError as error:
            if not done.done():
                done.set_exception(error)
        except asyncio.CancelledError:
            if not done.done():
                done.set_exception(_stopping())
            raise
        else:
            if not done.done():  # whoever asked may have gone
                done.set_result(result)
        finally:
            self._count -= 1


def _forget(done: "asyncio.Future[Any]") -> None:
    """An error that nobody came for is not worth asyncio's complaint."""
    if not done.cancelled():
        done.exception()


def _stopping() -> NodeStopping:
    return NodeStopping("the node is shutting down")
