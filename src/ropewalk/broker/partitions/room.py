"""Whether the disk has room: looked at once a second, said in the journal when it ends and when it is back.

A full disk is a passing state. Records are refused, everything is read, and whatever deletes goes on by way of the reserve
(`base/reserve.py`); when there is room again the reserve is made whole, and records are taken.
"""

import asyncio
from collections.abc import Iterator

import structlog

from ropewalk.base import metrics
from ropewalk.base.limits import ROOM_LOOK_MS
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Pool
from ropewalk.log.directory import DataDirectory

_log = structlog.get_logger()


class Room:
    def __init__(self, directory: DataDirectory, pool: Pool) -> None:
        self._directory = directory
        self._reserve = directory.storage.reserve
        self._pool = pool
        self._was_full = False
        self.full_count = 0
        """How often the disk has been found full."""

    @property
    def is_full(self) -> bool:
        return self._reserve.is_full

    @property
    def problem(self) -> str | None:
        """A few words for a person; None while there is room."""
        if not self.is_full:
            return None
        left = (
            f"{self._reserve.size_bytes} of {self._reserve.whole_bytes} bytes are kept back to empty it with"
        )
        return f"the disk is full: writes are refused until there is room, reads go on; {left}"

    async def run(self) -> None:
        """For a directory that keeps a reserve."""
        while True:
            await self.look()
            await asyncio.sleep(ROOM_LOOK_MS / 1000)

    async def look(self) -> None:
        self._tell()
        await self._pool.run(self._directory.look_for_room)
        self._tell()

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.DISK_FULL, int(self.is_full))
        sheet.add(metrics.DISK_RESERVE, self._reserve.size_bytes)
        yield

    def _tell(self) -> None:
        if self.is_full == self._was_full:
            return
        self._was_full = self.is_full
        if self._was_full:
            self.full_count += 1
            _log.error(
                "the disk is full: writes are refused until there is room, reads go on",
                directory=self._directory.path,
                reserve_bytes=self._reserve.size_bytes,
            )
        else:
            _log.warning(
                "there is room on the disk again: writes are taken",
                directory=self._directory.path,
                reserve_bytes=self._reserve.size_bytes,
            )
