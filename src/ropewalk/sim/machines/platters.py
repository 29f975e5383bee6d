"""The disk of one machine: all its files and names, and the faults that can be armed.

It belongs to the machine and outlives the processes on it. The ports in `disk.py` are made of the methods
here; a nemesis acts on it directly.

Stricter than any real machine
    Syncing a file does not sync its name.
    A rename between directories is refused: it is the one change that cannot be kept in a directory's order.

What a reader could get wrong
    Write-back fails, not a sync: in the background, or when somebody asks for it. The error belongs to the file and to the
    file system, and is told once to each who has one of them open. Whoever syncs after that is told that all is well.
"""

import errno
import random
from collections.abc import Callable
from typing import Final

from ropewalk.sim.machines.process import PowerCut, Process
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.storage import (
    Directory,
    Hearing,
    Linked,
    Renamed,
    StoredFile,
    Unlinked,
    WriteBackErrors,
)
from ropewalk.sim.machines.trace import Trace

CAPACITY_BYTES: Final = 1 << 40


class Platters:
    """A machine's disk: all files, and the faults that are armed."""

    def __init__(
        self, rng: random.Random, trace: Trace, sometimes: Sometimes, *, can_sync_everything: bool
    ) -> None:
        self.rng = rng
        self.trace = trace
        self.sometimes = sometimes
        self.can_sync_everything = can_sync_everything
        self.has_kernel_syncs = False
        """Whether the machine syncs a few files by itself, without a thread of the process."""
        self.capacity_bytes = CAPACITY_BYTES
        """Set it near `used_bytes` and the disk is full, set it back and there is room again."""
        self.stalled_until_s = 0.0
        self.used_bytes = 0
        self.sync_count = 0
        self.sync_failure_count = 0
        """How often a process was told of a failed write-back."""
        self.has_failed = False
        """Whether write-back has failed since the power did: what was only in the page cache may be lost, whoever was told."""
        self.errors = WriteBackErrors()
        """Of the whole file system."""
        self.is_waiting_allowed = False
        self.is_unawaited = False
        """Whether whoever asked for what a thread does just now has gone."""
        self._root = Directory()
        self._file_count = 0
        self._locks: dict[StoredFile, Process] = {}
        self._sync_failures_armed = 0
        self._syncs_until_failure = 0
        self._fails_only_unawaited = False
        self._failure_code = errno.EIO
        self._cut: tuple[int, Callable[[], None]] | None = None
        self._cut_at_rename: Callable[[], None] | None = None
        self._on_creation: tuple[str, Callable[[], None]] | None = None
        self.on_power_lost: Callable[[], None] = lambda: None

    # Faults.

    def lose_power(self) -> None:
        """Keep what is durable and a seeded outcome of the rest. Everything is cold afterwards."""
        self._cut = self._cut_at_rename = self._on_creation = None
        self.errors = WriteBackErrors()
        self.has_failed = False
        self.on_power_lost()
        self._root.lose_power(self.rng, self.sometimes)
        self.used_bytes = sum(len(file.data) for _, file in self.files())

    def wipe(self) -> None:
        """Another disk, an empty one, in its place."""
        self._root = Directory()
        self.errors = WriteBackErrors()
        self.has_failed = False
        self._locks.clear()
        self.used_bytes = 0

    def copy(self) -> Callable[[], None]:
        """Take a backup of all files as processes see them now; what it answers puts them back, and nothing else is there then.

        Nobody may be using them, at either time.
        """
        copies = {path: bytes(file.data) for path, file in self.files()}

        def put_back() -> None:
            self.wipe()
            for path, content in copies.items():
                self.make_directory(path.rpartition("/")[0])
                self.create_file(path).append(content)
            self.sync_everything()
            self.used_bytes = sum(map(len, copies.values()))

        return put_back

    def cut_power_after(self, operation_count: int, cut: Callable[[], None]) -> None:
        """Call `cut` in the middle of things: before the given number of further changes has been made."""
        self._cut = (operation_count, cut)

    def cut_power_after_rename(self, cut: Callable[[], None]) -> None:
        """Call `cut` between the next rename and whatever change would follow it."""
        self._cut_at_rename = cut

    def when_created(self, suffix: str, strike: Callable[[], None]) -> None:
        """Call `strike` when the next file is created whose name ends like that."""
        self._on_creation = (suffix, strike)

    def forget_creation(self) -> None:
        """What was to happen when a file is created is not going to happen."""
        self._on_creation = None

    def fail_syncs(
        self, count: int, *, after: int = 0, code: int = errno.EIO, only_unawaited: bool = False
    ) -> None:
        """So many syncs fail, beginning with the one that follows the next `after`; `only_unawaited`: of those that nobody waits for."""
        self._sync_failures_armed = count
        self._fails_only_unawaited = only_unawaited
        self._syncs_until_failure = after
        self._failure_code = code

    def fail_write_back(self, code: int) -> bool:
        """In the background, what is dirty now does not get to the platter; False if nothing is. Nobody is told before they sync."""
        dirty = [file for _, file in self.files() if file.is_dirty]
        self._failure_code = code
        for file in dirty:
            self._lose(file)
        if dirty:
            self.sometimes.note("write-back failed in the background")
            self.trace.note("write-back fails", code)
        return bool(dirty)

    def stall(self, until_s: float) -> None:
        """Calls to the pool are not answered before then."""
        self.sometimes.note("the disk stalled")
        self.stalled_until_s = max(self.stalled_until_s, until_s)

    def heal(self) -> None:
        """There is room, nothing stalls, and nothing more is going to fail. What rotted stays rotten."""
        self.make_room()
        self.stalled_until_s = 0.0
        self._sync_failures_armed = 0
        self._cut = self._cut_at_rename = self._on_creation = None

    @property
    def is_short_of_room(self) -> bool:
        return self.capacity_bytes < CAPACITY_BYTES

    def make_room(self) -> None:
        self.capacity_bytes = CAPACITY_BYTES

    def evict(self, *, share: float = 1.0) -> None:
        """The kernel needed the memory: clean pages go cold."""
        self.sometimes.note("cached pages were evicted")
        for _, file in self.files():
            file.evict(self.rng, share=share)

    def files(self) -> list[tuple[str, StoredFile]]:
        """Every file with its path, in the order of paths: for choosing where to do damage, and for tests."""
        found: list[tuple[str, StoredFile]] = []
        _collect(self._root, "", found)
        return found

    # What the ports are made of.

    def on_change(self, process: Process) -> None:
        if self._cut is not None:
            remaining, cut = self._cut
            if remaining > 0:
                self._cut = (remaining - 1, cut)
            else:
                self._cut = None
                self.sometimes.note("the power failed within an operation")
                self.trace.note("power fails within an operation", process.host)
                cut()
                raise PowerCut

    def find(self, path: str) -> StoredFile | Directory | None:
        node: StoredFile | Directory | None = self._root
        for name in path.split("/"):
            if name:
                if not isinstance(node, Directory):
                    return None
                node = node.entries.get(name)
        return node

    def find_directory(self, path: str) -> Directory:
        node = self.find(path)
        if isinstance(node, Directory):
            return node
        raise FileNotFoundError(errno.ENOENT, "no such directory", path)

    def create_file(self, path: str) -> StoredFile:
        if self.used_bytes >= self.capacity_bytes:
            self.sometimes.note("a write met a full disk")
            raise OSError(errno.ENOSPC, "no space left on device", path)
        parent, _, name = path.rpartition("/")
        directory = self.find_directory(parent)
        self._file_count += 1
        file = StoredFile(self._file_count)
        directory.change(Linked(name, file))
        if self._on_creation is not None and name.endswith(self._on_creation[0]):
            _, strike = self._on_creation
            self._on_creation = None
            strike()
        return file

    def make_directory(self, path: str) -> None:
        directory = self._root
        for name in path.split("/"):
            if name:
                node = directory.entries.get(name)
                if node is None:
                    node = Directory()
                    directory.change(Linked(name, node))
                elif not isinstance(node, Directory):
                    raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
                directory = node

    def remove(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        directory = self.find(parent)
        if not isinstance(directory, Directory) or name not in directory.entries:
            return
        node = directory.entries[name]
        if isinstance(node, Directory):
            for inner in sorted(node.entries):
                self.remove(f"{path}/{inner}")
        else:
            self.used_bytes -= len(node.data)
        directory.change(Unlinked(name))

    def rename(self, source: str, target: str) -> None:
        source_parent, _, source_name = source.rpartition("/")
        target_parent, _, target_name = target.rpartition("/")
        if source_parent != target_parent:
            raise OSError(errno.EXDEV, "renamed between directories", source)
        directory = self.find_directory(source_parent)
        if source_name not in directory.entries:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        replaced = directory.entries.get(target_name)
        if isinstance(replaced, Directory) and replaced.entries:
            raise OSError(errno.ENOTEMPTY, "directory not empty", target)
        if isinstance(replaced, StoredFile):
            self.used_bytes -= len(replaced.data)
        directory.change(Renamed(source_name, target_name))
        if self._cut_at_rename is not None:
            self._cut, self._cut_at_rename = (0, self._cut_at_rename), None

    def write(self, file: StoredFile, data: memoryview) -> int:
        room = self.capacity_bytes - self.used_bytes
        if room <= 0:
            self.sometimes.note("a write met a full disk")
            raise OSError(errno.ENOSPC, "no space left on device")
        taken = data[:room]
        if len(taken) < len(data):
            self.sometimes.note("a write was short")
        file.append(taken)
        self.used_bytes += len(taken)
        return len(taken)

    def sync_file(self, file: StoredFile) -> None:
        """Write back; `tell` says what became of it."""
        self.sync_count += 1
        if self._draw_sync_failure():
            self._lose(file)
        else:
            file.sync()

    def draw_taken(self, count: int) -> int:
        """How many of so many syncs the kernel takes at once: all, unless one is to fail, and then sometimes fewer."""
        self.sometimes.note("files were synced without a thread")
        if count > 1:
            self.sometimes.note("several files were synced without a thread")
        is_due = self._sync_failures_armed > 0 and self._syncs_until_failure < count
        if not is_due or self._fails_only_unawaited or self.rng.random() < 0.5:
            return count
        self._sync_failures_armed -= 1
        self.sync_failure_count += 1
        self.sometimes.note("the kernel took a part of the syncs")
        self.trace.note("syncs taken in part")
        return self.rng.randrange(count)

    def stall_s(self, now_s: float) -> float:
        """How long the disk stands still yet."""
        return max(0.0, self.stalled_until_s - now_s)

    def sync_everything(self) -> None:
        """As `sync_file`, for all files and names."""
        self.sync_count += 1
        files = [file for _, file in self.files() if file.is_dirty]
        if self._draw_sync_failure():
            for file in files:
                self._lose(file)
            self.errors.add(self._failure_code)
            return
        for file in files:
            file.sync()
        _sync_names(self._root)

    def tell(self, hearing: Hearing) -> None:
        """Raise the error that a description has not heard of, if there is one."""
        code = hearing.take()
        if code:
            self.sync_failure_count += 1
            self.sometimes.note("a sync failed")
            if code != errno.EIO:
                self.sometimes.note("a sync failed for want of room")
            self.trace.note("sync fails", code)
            raise OSError(code, "write-back failed")

    def lock(self, file: StoredFile, process: Process, path: str) -> None:
        holder = self._locks.get(file)
        if holder is not None and holder.alive and holder is not process:
            raise BlockingIOError(errno.EWOULDBLOCK, f"{path} is locked by another process")
        self._locks[file] = process

    def unlock(self, process: Process) -> None:
        self._locks = {file: holder for file, holder in self._locks.items() if holder is not process}

    def _draw_sync_failure(self) -> bool:
        if self._sync_failures_armed == 0 or (self._fails_only_unawaited and not self.is_unawaited):
            return False
        if self._syncs_until_failure:
            self._syncs_until_failure -= 1
            return False
        if self.is_unawaited:
            self.sometimes.note("a sync failed that nobody waited for")
        self._sync_failures_armed -= 1
        return True

    def _lose(self, file: StoredFile) -> None:
        self.has_failed = True
        file.fail_sync(self.rng)
        file.errors.add(self._failure_code)
        self.errors.add(self._failure_code)


def _collect(directory: Directory, path: str, found: list[tuple[str, StoredFile]]) -> None:
    for name in sorted(directory.entries):
        node = directory.entries[name]
        if isinstance(node, Directory):
            _collect(node, f"{path}/{name}", found)
        else:
            found.append((f"{path}/{name}", node))


def _sync_names(directory: Directory) -> None:
    directory.sync()
    for node in directory.entries.values():
        if isinstance(node, Directory):
            _sync_names(node)
