"""The disk pool: a few threads for calls that wait for the disk."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class ThreadPool:
    def __init__(self, thread_count: int) -> None:
        self._executor = ThreadPoolExecutor(thread_count, thread_name_prefix="disk")

    def run(self, function: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)

    def stop(self) -> None:
        """Wait for what runs; nothing may be started afterwards."""
        self._executor.shutdown(wait=True)
