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
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

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


class Lane:
    """Lets one who waits go on in each turn of the loop, in the order of their coming.

    A dozen walks over all partitions may be under way at a time, each of which takes a few milliseconds before it lets
    others have a turn. All in one turn of the loop they would hold it for all of that together.
    """

    __slots__ = ("_is_driven", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_driven = False

    def join(self, loop: asyncio.AbstractEventLoop) -> "asyncio.Future[None]":
        future = loop.create_future()
        self._waiting.append(future)
        if not self._is_driven:
            self._is_driven = True
            loop.call_soon(self._drive, loop)
        return future

    def _drive(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():  # whoever waited may have been cancelled
                future.set_result(None)
                break
        self._is_driven = bool(self._waiting)
        if self._is_driven:
            loop.call_soon(self._drive, loop)


_lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, Lane] = WeakKeyDictionary()

OWN_LANE: Final[ContextVar[Lane | None]] = ContextVar("own_lane", default=None)
"""Of a process that shares its loop with others, as simulated ones do: nobody waits for one that is dead. None: the loop has one lane."""


class Pace:
    """For work that is made of many small pieces: everything else has a turn after so many of them.

    Of all work that goes at a pace, one piece of work has its pieces in a turn of the loop.
    """

    __slots__ = ("_count", "_per_turn")

    def __init__(self, per_turn: int) -> None:
        self._per_turn = per_turn
        self._count = 0

    async def next(self, count: int = 1) -> None:
        """Await before each piece, or so many."""
        self._count += count
        if self._count > self._per_turn:
            self._count = count
            loop = asyncio.get_running_loop()
            lane = OWN_LANE.get() or _lanes.get(loop)
            if lane is None:
                lane = _lanes[loop] = Lane()
            await lane.join(loop)


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
