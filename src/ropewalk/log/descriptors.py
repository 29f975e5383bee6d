"""Open files, up to a limit, least recently used ones closed first.

What a reader could get wrong
    A file with unsynced bytes is pinned until it is synced: the kernel reports a failed write-back to
    descriptors that were open at the time, and a descriptor opened later may never hear of it. Pinned files
    may exceed the limit; syncing brings them back under it.
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

    def pin(self, path: str, file: File) -> None:
        """`file` is about to be written to; keep it open until `unpin`."""
        self._idle.pop(path, None)
        self._pinned[path] = file

    def unpin(self, path: str) -> None:
        """`path` was synced."""
        file = self._pinned.pop(path, None)
        if file is not None:
            self._idle[path] = file
            self._evict()

    def forget(self, path: str) -> None:
        """`path` is about to be removed or renamed."""
        self._idle.pop(path, None)
        self._pinned.pop(path, None)

    def _evict(self) -> None:
        while self._idle and len(self._idle) + len(self._pinned) > self._count_max:
            self._idle.popitem(last=False)
