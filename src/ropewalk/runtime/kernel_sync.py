"""Syncs that the kernel does by itself: begun on the event loop, and heard of there.

A thread that waits in `fdatasync` must be woken, must get the interpreter's lock and must give it back, which costs more than many a
disk takes. Here the loop hands the files over and goes on.

What a reader could get wrong
    One call at a time: while one is under way `begin` answers None, and the caller takes another way.
    Any error is final (`base/syncs.py`), also of one file among several, of the submission itself, and of a sync that nobody waits
    for any more. A submission of which only a part was taken has failed, although the part is under way.
    A caller that gives up does not end the sync. An orderly stop waits in `drain` until it is over, and hears of its error.
"""

import asyncio
import errno
import os
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from ropewalk.base.syncs import Syncs

F_contra = TypeVar("F_contra", contravariant=True)


class SyncQueue(Protocol[F_contra]):
    """What takes syncs of files and says how each ended; the kernel, or a model of it."""

    def submit(self, files: Sequence[F_contra], /) -> int:
        """How many syncs were begun, from the first; `OSError` where none was."""

    def ended(self) -> list[int]:
        """The `errno` of each sync that has ended since this was asked last, 0 for one that went well."""


class KernelSync(Generic[F_contra]):
    """Of one disk and one event loop."""

    def __init__(self, queue: SyncQueue[F_contra], syncs: Syncs) -> None:
        self._queue = queue
        self._syncs = syncs
        self._open_count = 0
        """Syncs that the kernel has taken and has not reported."""
        self._done: asyncio.Future[None] | None = None
        self._draining: list[asyncio.Future[None]] = []

    def begin(self, files: Sequence[F_contra]) -> "asyncio.Future[None] | None":
        """Sync these; None while others are being synced. Raises `SyncFailed` where they cannot all be begun."""
        if self._open_count:
            return None
        self._syncs.check()
        try:
            self._open_count = self._queue.submit(files)
        except OSError as error:
            raise self._syncs.fail(error) from error
        if self._open_count < len(files):
            taken = f"the kernel took {self._open_count} of {len(files)} syncs"
            raise self._syncs.fail(OSError(errno.EAGAIN, taken))
        self._done = asyncio.get_running_loop().create_future()
        return self._done

    def on_ended(self) -> None:
        """The queue has something to report."""
        for code in self._queue.ended():
            self._open_count -= 1
            if code:
                self._syncs.fail(OSError(code, os.strerror(code)))
        if self._open_count:
            return
        done, self._done = self._done, None
        if done is not None and not done.done():  # the caller may have given up
            if self._syncs.failure is None:
                done.set_result(None)
            else:
                done.set_exception(self._syncs.fail(OSError()))
        draining, self._draining = self._draining, []
        for drained in draining:
            if not drained.done():
                drained.set_result(None)

    async def drain(self) -> None:
        """Return when nothing is under way. Whether it went well is with the disk's `syncs`."""
        while self._open_count:
            drained: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._draining.append(drained)
            await drained
