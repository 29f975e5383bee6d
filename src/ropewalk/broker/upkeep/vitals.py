"""How the node's process and its disk are doing: what has to be asked of the machine, and how late the loop wakes.

The machine is asked when somebody wants to know, in the disk pool; nothing here runs for figures nobody reads, except
the watch on the loop, which takes four short turns a second.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from ropewalk.base import metrics
from ropewalk.base.durations import Durations
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock, Disk, OwnProcess, Pool, Usage

WATCH_S: Final = 0.25
_FRESH_MS: Final = 500.0
"""Whoever asks again within this time gets the same figures."""


class Vitals:
    def __init__(self, process: OwnProcess, disk: Disk, data_path: str, pool: Pool, clock: Clock) -> None:
        self.usage = Usage()
        self.disk_free_bytes: int | None = None
        """None until asked for the first time, and while the disk does not say."""

        self.disk_problem: str | None = None
        """Why the disk does not say."""

        self.loop_delays = Durations()
        self._process = process
        self._disk = disk
        self._data_path = data_path
        self._pool = pool
        self._clock = clock
        self._refreshed_at_ms: float | None = None

    async def refresh(self) -> None:
        """Ask the machine, unless it was asked a moment ago."""
        now_ms = self._clock.monotonic_ms()
        if self._refreshed_at_ms is None or now_ms - self._refreshed_at_ms > _FRESH_MS:
            self.usage = await self._pool.run(self._process.usage)
            try:
                self.disk_free_bytes = await self._pool.run(self._disk.free_bytes, self._data_path)
                self.disk_problem = None
            except OSError as error:
                self.disk_free_bytes, self.disk_problem = None, str(error)
            self._refreshed_at_ms = now_ms

    async def watch_loop(self) -> None:
        """How late a timer fires is how long everybody else's work was delayed."""
        while True:
            began_ms = self._clock.monotonic_ms()
            await asyncio.sleep(WATCH_S)
            self.loop_delays.add(max(0.0, self._clock.monotonic_ms() - began_ms - WATCH_S * 1000))

    def collect(self, sheet: Sheet) -> Iterator[None]:
        usage = self.usage
        for metric, value in (
            (metrics.PROCESS_CPU, round(usage.cpu_user_s + usage.cpu_system_s, 3)),
            (metrics.PROCESS_MEMORY, usage.resident_bytes),
            (metrics.PROCESS_ADDRESS_SPACE, usage.address_space_bytes),
            (metrics.PROCESS_START, usage.started_at_s),
            (metrics.PROCESS_FILES, usage.descriptor_count),
            (metrics.PROCESS_FILES_MAX, usage.descriptor_count_max),
            (metrics.DISK_READ, usage.disk_read_bytes),
            (metrics.DISK_WRITTEN, usage.disk_written_bytes),
        ):
            sheet.add(metric, value)
        sheet.add(metrics.CPU, usage.cpu_user_s, "user")
        sheet.add(metrics.CPU, usage.cpu_system_s, "system")
        if self.disk_free_bytes is not None:
            sheet.add(metrics.DISK_FREE, self.disk_free_bytes)
        sheet.add_durations(metrics.LOOP_DELAY, self.loop_delays)
        yield
