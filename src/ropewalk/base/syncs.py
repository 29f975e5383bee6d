"""Whether every sync of a process has succeeded so far, for whoever is about to say that something is on disk.

Linux tells an error of write-back once to each open file description, calls the pages clean that the disk never got, and
lets the next sync succeed. So the first error is final: it is kept here, every later sync fails with it, and nothing is
acknowledged, checkpointed or marked as clean any more.

What a reader could get wrong
    A sync that fails for want of room (thin volumes, quotas, btrfs) is a failed sync like any other. What was to be synced had
    been taken before, and is lost. `SyncFailed` therefore never carries the `errno` of a full disk, which elsewhere means: go on.
    Syncs run in several threads. Nothing here is ever taken back, so no lock is needed.
"""

import errno
from collections.abc import Callable


class SyncFailed(OSError):
    """A sync failed, in this call or before it. End the process: nobody can tell what the disk holds."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EIO, f"a sync failed: {reason}")
        self.reason = reason


class Syncs:
    """Of one disk, for the life of a process."""

    __slots__ = ("failure",)

    def __init__(self) -> None:
        self.failure: str | None = None
        """The reason of the first sync that failed; None while none has."""

    def carry_out(self, sync: Callable[[], None]) -> None:
        """Call `sync`; raises `SyncFailed` if it fails, and if any other has failed by the time it is done."""
        self.check()
        try:
            sync()
        except OSError as error:
            raise self.fail(error) from error
        self.check()

    def fail(self, error: OSError) -> SyncFailed:
        """A sync has failed with `error`; answers what is to be raised."""
        if self.failure is None:
            self.failure = error.reason if isinstance(error, SyncFailed) else error.strerror or str(error)
        return SyncFailed(self.failure)

    def check(self) -> None:
        """Call before anything is said to be on disk."""
        if self.failure is not None:
            raise SyncFailed(self.failure)
