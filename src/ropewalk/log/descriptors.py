"""Open files, up to a limit, least recently used ones closed first.

What a reader could get wrong
    A file with unsynced bytes is pinned until it is synced: the kernel reports a failed write-back to
    descriptions that were open at the time, and one opened later may never hear of it: not if the kernel has let go of the
    file in between. Where more are written to than may be open (`flush=os` syncs seldom), the one that has been pinned longest
    is closed all the same, and remembered: its next sync has to be one of everything, whose description is as old as
    the process and hears of every file (`was_given_up`). Where such a sync cannot be trusted pinned files exceed the limit
    until they are synced, which `is_crowded` asks for.
    Nothing is ever closed here. Dropping the reference is enough, so whoever still reads from an evicted
    file can finish.
    Only the event loop calls anything but `peek`.
"""

from collections import OrderedDict

from ropewalk.base.ports import Disk, File


class Descriptors:
    def __init__(self, disk: Disk, count_max: int) -> None:
        self._disk = disk
        self._count_max = count_max
        self._idle: OrderedDict[str, File] = OrderedDict()
        self._pinned: dict[str, File] = {}
        self._held: set[str] = set()
        """Those of the pinned that nobody could open again by their path."""
        self._given_up: set[str] = set()
        """Paths of files that were closed before they were synced."""

    def __len__(self) -> int:
        return len(self._idle) + len(self._pinned)

    def get(self, path: str, *, create: bool = False) -> File:
        """The file at `path`, opened if need be."""
        file = self._pinned.get(path)
        if file is not None:
            return file
        file = self._idle.get(path)
        if file is not None:
            self._idle.move_to_end(path)
            return file
        file = self._disk.open(path, create=create)
        self.keep(path, file)
        return file

    def peek(self, path: str) -> File | None:
        """The file at `path` if it is open; safe in any thread."""
        return self._pinned.get(path) or self._idle.get(path)

    def keep(self, path: str, file: File) -> None:
        """Remember a file that was opened elsewhere."""
        if path not in self._pinned and path not in self._idle:
            self._idle[path] = file
            self._evict()

    def pin(self, path: str) -> File:
        """The file at `path`, which is about to be written to: it stays open until `unpin`, if that many may be open."""
        file = self._pinned.get(path)
        if file is None:
            file = self.get(path)
            self._idle.pop(path, None)
            self._pinned[path] = file
            self._evict()
            if len(self._pinned) > self._count_max and self._disk.can_sync_everything:
                self._give_up_one()
        return file

    def hold(self, path: str, file: File) -> None:
        """`file` is on its way to `path`, where another still lies: it stays open until `unpin` in any case."""
        self._idle.pop(path, None)
        self._pinned[path] = file
        self._held.add(path)

    def unpin(self, path: str) -> None:
        """`path` was synced, all that is in it."""
        self._given_up.discard(path)
        self._held.discard(path)
        file = self._pinned.pop(path, None)
        if file is not None:
            self._idle[path] = file
            self._evict()

    def was_given_up(self, path: str) -> bool:
        """Whether a write-back of `path` may have failed that nobody hears of who opens it again."""
        return path in self._given_up

    @property
    def is_crowded(self) -> bool:
        """Whether so many files wait for a sync that it should not wait for long."""
        return len(self._pinned) + len(self._given_up) > self._count_max // 2

    def forget(self, path: str) -> None:
        """`path` is about to be removed or renamed."""
        self._idle.pop(path, None)
        self._pinned.pop(path, None)
        self._given_up.discard(path)
        self._held.discard(path)

    def _give_up_one(self) -> None:
        """Close the file that has been pinned longest, unsynced."""
        for path in self._pinned:
            if path not in self._held:
                del self._pinned[path]
                self._given_up.add(path)
                return

    def _evict(self) -> None:
        while self._idle and len(self._idle) + len(self._pinned) > self._count_max:
            self._idle.popitem(last=False)
