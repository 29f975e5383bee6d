"""An event loop in a thread of its own, for callers that block."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
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

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Wait for the result; whatever the work raises is raised here."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def call(self, function: Callable[[], T]) -> T:
        """The same for a function that answers at once but belongs on the loop's thread."""

        async def once() -> T:
            return function()

        return self.run(once())

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
