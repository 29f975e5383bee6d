"""The disk pool: a few threads for calls that wait for the disk."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class ThreadPool:
    def __init__(self, thread_count: int) -> None:
        self._executor = ThreadPoolExecutor(thread_count, thread_name_prefix="disk")
        self._under_way: set[Future[Any]] = set()

    def run(self, function: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        call: Future[T] = self._executor.submit(function, *arguments)
        self._under_way.add(call)
        call.add_done_callback(self._under_way.discard)
        return asyncio.wrap_future(call)

    async def drain(self) -> None:
        calls = [asyncio.wrap_future(call) for call in list(self._under_way)]
        await asyncio.gather(*calls, return_exceptions=True)  # whoever asked for it has heard, or has gone

    def stop(self) -> None:
        """Wait for what runs; nothing may be started afterwards."""
        self._executor.shutdown(wait=True)
