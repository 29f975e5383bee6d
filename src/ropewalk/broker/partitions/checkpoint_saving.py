"""Making a checkpoint durable: one write of a file at a time, which serves everybody who waits.

That there is one writer matters: an older write must never end after a newer one.
"""

import asyncio
import errno
from collections.abc import Callable
from typing import Final

from ropewalk.base.errors import NodeStopping, RopewalkError, StorageFailed
from ropewalk.base.ports import Pool
from ropewalk.log.checkpoints import CheckpointWrite
from ropewalk.runtime.bell import Bell

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE})
"""The disk is full, or no more files may be open: refuse, and go on. Any other failure to write means that the disk
cannot be trusted."""


class CheckpointSaving:
    def __init__(self, take: Callable[[], CheckpointWrite], pool: Pool) -> None:
        """`take` copies what has been noted, for one write."""
        self._take = take
        self._pool = pool
        self._waiting: list[asyncio.Future[CheckpointWrite]] = []
        self._writing: list[asyncio.Future[CheckpointWrite]] = []
        """Those whose write is under way."""
        self._is_over = False
        self._wake = Bell()

    async def save(self) -> CheckpointWrite:
        """Write what has been noted; the answer knows what is durable then. `StorageFailed` if there is no room.

        `NodeStopping` if it is too late: it may or may not have been written.
        """
        if self._is_over:
            raise _stopping()
        saved: asyncio.Future[CheckpointWrite] = asyncio.get_running_loop().create_future()
        self._waiting.append(saved)
        self._wake.ring()
        return await saved

    async def run(self) -> None:
        """However this ends, whoever waits hears of it: some cannot be cancelled."""
        try:
            while True:
                await self._write()
        finally:
            self.stop()

    async def _write(self) -> None:
        if not self._waiting:
            await self._wake.wait()
        self._writing, self._waiting = self._waiting, []
        write = self._take()
        try:
            await self._pool.run(write.run)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            _tell(self._writing, StorageFailed(f"{write.path}: {error.strerror}"))
        else:
            _tell(self._writing, write)

    def stop(self) -> None:
        """Send away whoever still waits, and whoever comes; for whoever never let it run, too."""
        self._is_over = True
        _tell([*self._writing, *self._waiting], _stopping())
        self._writing, self._waiting = [], []


def _stopping() -> NodeStopping:
    return NodeStopping("the node is shutting down")


def _tell(waiting: "list[asyncio.Future[CheckpointWrite]]", outcome: CheckpointWrite | RopewalkError) -> None:
    for saved in waiting:
        if saved.done():  # whoever asked may have gone
            continue
        if isinstance(outcome, RopewalkError):
            saved.set_exception(outcome)
        else:
            saved.set_result(outcome)
