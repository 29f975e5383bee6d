"""Files of the operating system.

What a reader could get wrong
    `syncfs` reports an error once per open file description, so everybody who syncs has one of their own (`open_everything`),
    older than what it is to sync.
    On file systems outside the tested list (FUSE, overlay, network) `syncfs` may reach nothing, and before Linux 5.8 it reports
    nothing: there every file is synced by itself.
    `read_cached` belongs to the event loop's thread: its buffers are recycled without a lock. So does `begin_sync`, which is bound
    to the loop that it was first called on.
"""

import asyncio
import ctypes
import errno
import fcntl
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from typing_extensions import Buffer

from ropewalk.base.ports import File
from ropewalk.base.syncs import Syncs
from ropewalk.runtime.aio import open_queue
from ropewalk.runtime.buffers import ReadBuffers
from ropewalk.runtime.kernel_sync import KernelSync

SYNCFS_FILE_SYSTEMS: Final = frozenset({"ext4", "xfs", "btrfs"})
_SYNCFS_REPORTS_SINCE: Final = (5, 8)
"""Earlier kernels answer that all is well, whatever became of write-back."""

_libc = ctypes.CDLL(None, use_errno=True)


class OsFile:
    __slots__ = ("_buffers", "_descriptor", "_syncs")

    def __init__(self, descriptor: int, buffers: ReadBuffers, syncs: Syncs | None = None) -> None:
        """Without the `syncs` of a disk it answers for itself alone."""
        self._descriptor = descriptor
        self._buffers = buffers
        self._syncs = Syncs() if syncs is None else syncs

    def __del__(self) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def append(self, data: Buffer) -> int:
        return os.write(self._descriptor, data)

    def read(self, position: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        if len(data) == size or not data:
            return data
        chunks = [data]  # pread stops at 2 GiB and on signals; only an empty answer is the end of the file
        missing = size - len(data)
        while missing and chunks[-1]:
            chunks.append(os.pread(self._descriptor, missing, position + size - missing))
            missing -= len(chunks[-1])
        return b"".join(chunks)

    def read_cached(self, position: int, size: int) -> memoryview | None:
        view = self._buffers.take(size)
        try:
            taken = os.preadv(self._descriptor, [view], position, os.RWF_NOWAIT)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EOPNOTSUPP):
                return None
            raise
        return view if taken == size else None

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def rewrite(self, position: int, data: Buffer) -> None:
        # A descriptor of its own: one that was opened to append does nothing else, whatever the position.
        descriptor = os.open(f"/proc/self/fd/{self._descriptor}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            remaining = memoryview(data)
            while remaining:
                written = os.pwrite(descriptor, remaining, position)
                remaining, position = remaining[written:], position + written
        finally:
            os.close(descriptor)

    def hear_former_errors(self) -> None:
        with suppress(OSError):
            os.fdatasync(self._descriptor)

    def drop_cached(self) -> None:
        with suppress(OSError):  # some file systems know no such advice
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def sync(self) -> None:
        self._syncs.carry_out(lambda: os.fdatasync(self._descriptor))


class OsEverything:
    __slots__ = ("_descriptor", "_syncs")

    def __init__(self, root: str, syncs: Syncs) -> None:
        self._descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._syncs = syncs

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):  # opening it may have failed
            os.close(self._descriptor)

    def hear_former_errors(self) -> None:
        with suppress(OSError):
            self._sync()

    def sync(self) -> None:
        self._syncs.carry_out(self._sync)

    def _sync(self) -> None:
        if _libc.syncfs(self._descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))


class OsDisk:
    """The file system that holds one data directory."""

    def __init__(self, root: str) -> None:
        self.syncs = Syncs()
        # Whoever reads the directory reads every record, and the cluster's secret may be near it.
        os.makedirs(root, mode=0o700, exist_ok=True)
        self.file_system = file_system_of(root)
        self._root = root
        self._everything = OsEverything(root, self.syncs)
        self._locks: list[int] = []
        self._buffers = ReadBuffers()
        self._kernel_syncs: _KernelSyncs | None = None

    @property
    def can_be_full(self) -> bool:
        return True

    @property
    def can_sync_everything(self) -> bool:
        return self.file_system in SYNCFS_FILE_SYSTEMS and kernel_reports_syncfs(os.uname().release)

    def open(self, path: str, *, create: bool = False) -> OsFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OsFile(os.open(path, flags, 0o640), self._buffers, self.syncs)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except (IsADirectoryError, PermissionError):
            shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.syncs.carry_out(lambda: os.fsync(descriptor))
        finally:
            os.close(descriptor)

    def begin_sync(self, files: Sequence[File]) -> "asyncio.Future[None] | None":
        loop = asyncio.get_running_loop()
        if self._kernel_syncs is None or self._kernel_syncs.loop is not loop:
            self._kernel_syncs = _KernelSyncs(loop, self.syncs)
        return self._kernel_syncs.begin(files)

    async def drain(self) -> None:
        if self._kernel_syncs is not None:
            await self._kernel_syncs.drain()

    def open_everything(self) -> OsEverything:
        assert self.can_sync_everything, f"syncfs is not trusted on {self.file_system}"
        return OsEverything(self._root, self.syncs)

    def hear_former_errors(self) -> None:
        self._everything.hear_former_errors()

    def sync_everything(self) -> None:
        assert self.can_sync_everything, f"syncfs is not trusted on {self.file_system}"
        self._everything.sync()

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    def lock(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        self._locks.append(descriptor)

    def close(self) -> None:
        """Let go of the locks; files live as long as they are referenced."""
        for descriptor in self._locks:
            os.close(descriptor)
        self._locks.clear()
        if self._kernel_syncs is not None:
            self._kernel_syncs.close()
            self._kernel_syncs = None


class _KernelSyncs:
    """Syncs without a thread on one event loop, where the machine has them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, syncs: Syncs) -> None:
        self.loop = loop
        self._queue = open_queue()
        self._sync: KernelSync[int] | None = None
        if self._queue is not None:
            self._sync = KernelSync(self._queue, syncs)
            loop.add_reader(self._queue.eventfd, self._sync.on_ended)

    def begin(self, files: Sequence[File]) -> "asyncio.Future[None] | None":
        if self._sync is None:
            return None
        descriptors = [file.fileno() for file in files if isinstance(file, OsFile)]
        return self._sync.begin(descriptors) if len(descriptors) == len(files) else None

    async def drain(self) -> None:
        if self._sync is not None:
            await self._sync.drain()

    def close(self) -> None:
        if self._queue is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(self._queue.eventfd)
            self._queue.close()


def kernel_reports_syncfs(release: str) -> bool:
    """Whether `syncfs` of a kernel with that release, as `uname` tells it, fails where write-back has failed."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= _SYNCFS_REPORTS_SINCE


def file_system_of(path: str) -> str:
    """The type of the file system that holds `path`, from the mount table; `unknown` where there is none."""
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo") as mounts:
            for line in mounts:
                fields, _, details = line.partition(" - ")
                if fields.split()[2] == wanted:
                    return details.split()[0]
    except FileNotFoundError:
        pass
    return "unknown"
