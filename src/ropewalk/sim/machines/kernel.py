"""The kernel of a simulated machine, as far as it syncs files by itself.

Each file of a call is synced at an instant of its own and reported at a later one, so that some are on the platter while others are
not yet. Where a sync is to fail, the kernel may instead take only a part of a call.
"""

import errno
from collections.abc import Callable, Sequence
from typing import Protocol


class SyncedFile(Protocol):
    def sync_by_kernel(self) -> int:
        """Sync it; the `errno` of what went wrong, or 0."""


class SimulatedSyncQueue:
    """What `KernelSync` hands files to."""

    def __init__(
        self,
        draw_taken: Callable[[int], int],
        carry_out_later: Callable[[Callable[[], None]], None],
        report_later: Callable[[Callable[[], None]], None],
    ) -> None:
        """`draw_taken` says how many of so many syncs are taken; the others call what they are given, at a later instant."""
        self.on_ended: Callable[[], None] = lambda: None
        """Called when there is something to fetch."""
        self._draw_taken = draw_taken
        self._carry_out_later = carry_out_later
        self._report_later = report_later
        self._ended: list[int] = []

    def submit(self, files: Sequence[SyncedFile]) -> int:
        taken_count = self._draw_taken(len(files))
        if not taken_count:
            raise OSError(errno.EAGAIN, "the kernel takes no sync")
        for file in files[:taken_count]:
            self._carry_out_later(self._syncing(file))
        return taken_count

    def ended(self) -> list[int]:
        ended, self._ended = self._ended, []
        return ended

    def _syncing(self, file: SyncedFile) -> Callable[[], None]:
        def carry_out() -> None:
            code = file.sync_by_kernel()
            self._report_later(lambda: self._report(code))

        return carry_out

    def _report(self, code: int) -> None:
        self._ended.append(code)
        self.on_ended()
