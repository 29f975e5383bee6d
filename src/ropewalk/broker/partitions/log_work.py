"""Who works at which log in the disk pool.

Most work (snapshots, scrubs, compaction, the removal of what has expired) goes on beside appends and beside other work.
Cutting a log back does not: it reads and rewrites everything, so it waits until the others have left and keeps them out.

What a reader could get wrong
    Nobody is made to leave. Work that takes long asks `is_wanted` at each step and gives up.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from ropewalk.log.log import Log


class LogWork:
    def __init__(self) -> None:
        self._working: dict[Log, int] = {}
        self._wanted: dict[Log, asyncio.Future[None]] = {}
        """By those who want a log for themselves; done when the last of the others has left."""

        self._snapshots: dict[Log, asyncio.Lock] = {}
        self._snapshot_writers: dict[Log, int] = {}
        """How many write a snapshot of a log, or wait to."""

    def is_wanted(self, log: Log) -> bool:
        """Whether somebody has the log for themselves or waits to: keep away."""
        return log in self._wanted

    def begin(self, log: Log) -> None:
        assert log not in self._wanted, f"{log.name} belongs to somebody else"
        self._working[log] = self._working.get(log, 0) + 1

    def end(self, log: Log) -> None:
        count = self._working[log] - 1
        if count:
            self._working[log] = count
            return
        del self._working[log]
        wanted = self._wanted.get(log)
        if wanted is not None and not wanted.done():
            wanted.set_result(None)

    @contextmanager
    def beside(self, log: Log) -> Iterator[None]:
        """While this lasts nobody cuts the log. Ask `is_wanted` first."""
        self.begin(log)
        try:
            yield
        finally:
            self.end(log)

    @asynccontextmanager
    async def writing_snapshot(self, log: Log) -> AsyncIterator[None]:
        """Take a snapshot while this lasts, and write it: one at a time, since two of one offset would have the same name."""
        lock = self._snapshots.setdefault(log, asyncio.Lock())
        self._snapshot_writers[log] = self._snapshot_writers.get(log, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._snapshot_writers[log] -= 1
            if not self._snapshot_writers[log]:
                del self._snapshot_writers[log], self._snapshots[log]

    @asynccontextmanager
    async def alone(self, log: Log) -> AsyncIterator[None]:
        """Wait until nobody else works at the log, and keep others away while this lasts."""
        assert log not in self._wanted, f"{log.name}: two want the log for themselves"
        wanted = self._wanted[log] = asyncio.get_running_loop().create_future()
        try:
            if log in self._working:
                await wanted
            yield
        finally:
            del self._wanted[log]
