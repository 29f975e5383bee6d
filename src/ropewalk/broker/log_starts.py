"""Making log starts durable, for DeleteRecords and retention: one write at a time serves everybody who waits."""

import asyncio
import errno
from typing import Final

from ropewalk.base.errors import NodeStopping, StorageFailed
from ropewalk.base.ports import Pool
from ropewalk.log.checkpoints import CheckpointWrite
from ropewalk.log.directory import DataDirectory

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE})
"""The disk is full, or no more files may be open: refuse, and go on. Any other failure to write means that the disk
cannot be trusted."""


class LogStarts:
    def __init__(self, directory: DataDirectory, pool: Pool) -> None:
        self._directory = directory
        self._pool = pool
        self._waiting: list[asyncio.Future[CheckpointWrite]] = []
        self._wake: asyncio.Future[None] | None = None

    async def save(self) -> CheckpointWrite:
        """Write what the directory has noted; the answer knows the durable starts. `StorageFailed` if there is no room."""
        saved: asyncio.Future[CheckpointWrite] = asyncio.get_running_loop().create_future()
        self._waiting.append(saved)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        return await saved

    async def run(self) -> None:
        while True:
            if not self._waiting:
                self._wake = asyncio.get_running_loop().create_future()
                await self._wake
            waiting, self._waiting = self._waiting, []
            write = self._directory.take_log_starts()
            try:
                await self._pool.run(write.run)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                for saved in waiting:
                    saved.set_exception(StorageFailed(f"{self._directory.path}: {error.strerror}"))
            else:
                for saved in waiting:
                    saved.set_result(write)

    def stop(self) -> None:
        """Send away whoever still waits; call after `run` has been cancelled."""
        for saved in self._waiting:
            saved.set_exception(NodeStopping("the node is shutting down"))
        self._waiting.clear()
