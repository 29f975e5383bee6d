"""An event loop in a thread of its own, for callers that block."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from ropewalk.runtime.loop import run

T = TypeVar("T")


class LoopThread:
    """Runs from the moment it is made until `stop`.

    The thread is a daemon: a caller that never gets to `stop` can still end its process.
    """

    def __init__(self) -> None:
        self._running: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._serve, name="ropewalk", daemon=True)
        self._thread.start()
        self._loop, self._stop = self._running.result()

    def run(self, work: Coroutine[object, object, T], *, timeout_s: float | None = None) -> T:
        """Wait for the result; whatever the work raises is raised here. After `timeout_s` it is cancelled: `TimeoutError`."""
        outcome = self.start(work)
        try:
            return outcome.result(timeout_s)
        except BaseException:
            outcome.cancel()  # it has failed by itself, or nobody waits for it any more
            raise

    def start(self, work: Coroutine[object, object, T]) -> "Future[T]":
        """Have it done meanwhile. Whatever it raises is raised to whoever asks for the result, if anybody does."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run_calling_back(self, work: "Callable[[CallingThread], Coroutine[object, object, T]]") -> T:
        """The same for work that has functions called in this thread while it waits."""
        caller = CallingThread()
        outcome = asyncio.run_coroutine_threadsafe(work(caller), self._loop)
        outcome.add_done_callback(caller.release)
        try:
            caller.serve(self._loop)
            return outcome.result()
        except BaseException:
            outcome.cancel()
            raise

    def call(self, function: Callable[[], T]) -> T:
        """The same for a function that answers at once but belongs on the loop's thread."""

        async def once() -> T:
            return function()

        return self.run(once())

    def call_soon(self, function: Callable[[], object]) -> None:
        """Have the function called on the loop's thread; what is given first is called first."""
        self._loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """Cancel what still runs and return when the thread has ended."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _serve(self) -> None:
        run(self._until_stopped())

    async def _until_stopped(self) -> None:
        stop = asyncio.Event()
        self._running.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()


class CallingThread:
    """The thread that waits for a piece of work, as the work sees it."""

    def __init__(self) -> None:
        self._wanted: SimpleQueue[tuple[Callable[[], object], asyncio.Future[None]] | None] = SimpleQueue()

    async def call(self, function: Callable[[], object]) -> None:
        """Return when the waiting thread has called it; what it raises is raised here."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wanted.put((function, done))
        await done

    def serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the waiting thread: call what is wanted, until `release`."""
        while (wanted := self._wanted.get()) is not None:
            function, done = wanted
            try:
                function()
            except Exception as error:  # noqa: BLE001 - it belongs to whoever asked, and is raised there
                loop.call_soon_threadsafe(_settle, done, error)
            else:
                loop.call_soon_threadsafe(_settle, done, None)

    def release(self, _: object) -> None:
        self._wanted.put(None)


def _settle(done: "asyncio.Future[None]", error: Exception | None) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
