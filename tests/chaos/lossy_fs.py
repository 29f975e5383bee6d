"""A FUSE file system that forgets what was not synced when it is sent SIGUSR1 (SIGUSR2: a torn cut).

    python -m tests.chaos.lossy_fs MOUNT_POINT [SEED]

It lives in memory and ends when it is unmounted. The kernel is told to cache nothing, so that every read, write and
sync arrives here. Python runs a signal's handler before the next request is answered: looking at
`MOUNT_POINT/.power-cuts`, whose size is the number of cuts so far, both triggers and confirms one.
"""

import errno
import os
import signal
import stat
import sys
from random import Random

from fuse import FUSE, FuseOSError, Operations

from tests.chaos.lossy_tree import Directory, File, LossyTree

POWER_CUTS = "/.power-cuts"
LOST_BYTES = "/.lost-bytes"


class LossyFileSystem(Operations):  # type: ignore[misc]  # fusepy has no types
    use_ns = True
    flag_nullpath_ok = 1
    """A file that was removed while open has no path; its handle is enough."""

    def __init__(self, seed: int) -> None:
        self._tree = LossyTree()
        self._random = Random(seed)
        self._cuts = 0
        self._open: dict[int, tuple[File, bool]] = {}
        self._open_directories: dict[int, Directory] = {}
        self._handle_last = 0
        signal.signal(signal.SIGUSR1, lambda *_: self._cut(torn=None))
        signal.signal(signal.SIGUSR2, lambda *_: self._cut(torn=self._random))

    def _cut(self, torn: Random | None) -> None:
        self._tree.power_cut(torn)
        self._cuts += 1

    def __call__(self, operation: str, *arguments: object) -> object:
        try:
            return super().__call__(operation, *arguments)
        except OSError as error:
            raise FuseOSError(error.errno or errno.EIO) from error

    def getattr(self, path: str, handle: int | None = None) -> dict[str, int]:
        if path == POWER_CUTS:
            return {"st_mode": stat.S_IFREG | 0o444, "st_nlink": 1, "st_size": self._cuts}
        if path == LOST_BYTES:
            return {"st_mode": stat.S_IFREG | 0o444, "st_nlink": 1, "st_size": self._tree.lost_bytes}
        entry = self._open[handle][0] if handle in self._open else self._tree.find(path)
        if isinstance(entry, Directory):
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        return {"st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": len(entry.content)}

    def opendir(self, path: str) -> int:
        self._handle_last += 1
        self._open_directories[self._handle_last] = self._tree.directory(path)
        return self._handle_last

    def readdir(self, path: str | None, handle: int) -> list[str]:
        return [".", "..", *self._open_directories[handle].entries]

    def fsyncdir(self, path: str | None, datasync: int, handle: int) -> int:
        self._open_directories[handle].sync()
        return 0

    def releasedir(self, path: str | None, handle: int) -> int:
        del self._open_directories[handle]
        return 0

    def mkdir(self, path: str, mode: int) -> None:
        self._tree.make_directory(path)

    def rmdir(self, path: str) -> None:
        self._tree.remove_directory(path)

    def create(self, path: str, mode: int, fi: object = None) -> int:
        # The kernel does not pass the flags on here; it has looked the size up for O_APPEND just before.
        return self._opened(self._tree.create(path), appends=False)

    def open(self, path: str, flags: int) -> int:
        file = self._tree.file(path)
        if flags & os.O_TRUNC:
            file.truncate(0)
        return self._opened(file, appends=bool(flags & os.O_APPEND))

    def release(self, path: str | None, handle: int) -> int:
        del self._open[handle]
        return 0

    def read(self, path: str | None, size: int, offset: int, handle: int) -> bytes:
        return bytes(self._open[handle][0].content[offset : offset + size])

    def write(self, path: str | None, data: bytes, offset: int, handle: int) -> int:
        file, appends = self._open[handle]
        file.write(data, len(file.content) if appends else offset)
        return len(data)

    def truncate(self, path: str, length: int, handle: int | None = None) -> None:
        (self._open[handle][0] if handle in self._open else self._tree.file(path)).truncate(length)

    def fsync(self, path: str | None, datasync: int, handle: int) -> int:
        self._open[handle][0].sync()
        return 0

    def unlink(self, path: str) -> None:
        self._tree.remove(path)

    def rename(self, old: str, new: str) -> None:
        self._tree.rename(old, new)

    def chmod(self, path: str, mode: int) -> int:
        return 0

    def chown(self, path: str, uid: int, gid: int) -> None:
        pass

    def utimens(self, path: str, times: object = None) -> int:
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        return {
            "f_bsize": 4096,
            "f_frsize": 4096,
            "f_blocks": 1 << 20,
            "f_bfree": 1 << 20,
            "f_bavail": 1 << 20,
        }

    def _opened(self, file: File, *, appends: bool) -> int:
        self._handle_last += 1
        self._open[self._handle_last] = file, appends
        return self._handle_last


def main() -> None:
    mount_point = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    FUSE(
        LossyFileSystem(seed),
        mount_point,
        foreground=True,
        nothreads=True,
        direct_io=True,
        hard_remove=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
        fsname="lossy",
    )


if __name__ == "__main__":
    main()
