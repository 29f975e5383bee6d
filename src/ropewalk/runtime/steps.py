"""Run a coroutine to its first wait at once, and on from there without a task.

A request handler is a coroutine that mostly never waits. Making a task for each costs several times
what the handler does and delays its first step to a later turn of the loop, which would break the
promise that requests of one connection take effect in order. `begin` runs the first step where it
stands; each further step runs as the callback of the future it waits for.

What a reader could get wrong
    There is no current task inside: `asyncio.timeout` and `asyncio.sleep` with a current-task check do
    not work. Handlers wait for futures only; deadlines are set on the futures.
    An exception that escapes the coroutine is a bug; it is given to `on_done` like a result.
"""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def begin(
    coroutine: Coroutine[Any, None, T],
    on_done: Callable[[T | None, BaseException | None], None],
) -> bool:
    """True if the coroutine ended at once; `on_done` has then been called before this returns."""
    return _Steps(coroutine, on_done).step()


@types.coroutine
def turn() -> Generator[None, None, None]:
    """Let everything else that is ready run first."""
    yield


class Pace:
    """For work that is made of many small pieces: everything else has a turn after so many of them."""

    __slots__ = ("_count", "_per_turn")

    def __init__(self, per_turn: int) -> None:
        self._per_turn = per_turn
        self._count = 0

    async def next(self, count: int = 1) -> None:
        """Await before each piece, or so many."""
        self._count += count
        if self._count > self._per_turn:
            self._count = count
            await turn()


class _Steps:
    __slots__ = ("_coroutine", "_on_done")

    def __init__(
        self,
        coroutine: Coroutine[Any, None, T],
        on_done: Callable[[T | None, BaseException | None], None],
    ) -> None:
        self._coroutine = coroutine
        self._on_done = on_done

    def step(self, _: object = None) -> bool:
        try:
            waited_for = self._coroutine.send(None)
        except StopIteration as end:
            self._on_done(end.value, None)
            return True
        except BaseException as error:  # noqa: BLE001  handed on, not swallowed
            self._on_done(None, error)
            return True
        if waited_for is None:  # a bare yield: asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(self.step)
        else:
            # The handshake between a future and whoever awaits it, as asyncio's own Task does it.
            waited_for._asyncio_future_blocking = False
            waited_for.add_done_callback(self.step)
        return False
