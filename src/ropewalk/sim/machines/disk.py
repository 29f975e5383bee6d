"""The disk as one life of a process has it: the `Disk`, `File` and `Pool` ports.

When that life is over, they refuse. A blocking call through the pool happens at one seeded instant and is
answered at a later one; waiting for the disk on the event loop is an error, not a delay.
"""

import asyncio
import errno
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from typing_extensions import Buffer

from ropewalk.base.ports import File
from ropewalk.base.syncs import Syncs
from ropewalk.runtime.kernel_sync import KernelSync
from ropewalk.sim.machines.kernel import SimulatedSyncQueue
from ropewalk.sim.machines.platters import CAPACITY_BYTES, Platters
from ropewalk.sim.machines.process import CURRENT, PowerCut, Process
from ropewalk.sim.machines.storage import Directory, Hearing, StoredFile

if TYPE_CHECKING:
    from ropewalk.sim.machines.loop import SimulatedLoop

T = TypeVar("T")

READ_AHEAD_BYTES: Final = (0, 4096, 16384, 131072)
POOL_WAIT_S_MAX: Final = 0.0005
POOL_WORK_S_MAX: Final = 0.002
POOL_SLOW_PROBABILITY: Final = 0.02
POOL_SLOW_FACTOR: Final = 25.0


class BlockedTheLoop(Exception):
    """A call that waits for the disk was made on the event loop."""


class SimulatedFile:
    """The `File` port: one open description."""

    __slots__ = ("_disk", "_file", "_hearing", "_platters")

    def __init__(self, disk: "SimulatedDisk", file: StoredFile) -> None:
        self._disk = disk
        self._file = file
        self._hearing = Hearing(file.errors)
        self._platters = disk.platters

    def append(self, data: Buffer) -> int:
        self._disk.before_change()
        with memoryview(data) as view, view.cast("B") as octets:
            taken = self._platters.write(self._file, octets)
        self._platters.trace.note("append", self._file.number, len(self._file.data), taken)
        self._platters.trace.note_bytes(bytes(self._file.data[len(self._file.data) - taken :]))
        return taken

    def read(self, position: int, size: int) -> bytes:
        self._disk.before_use()
        if self._file.is_cached(position, size):
            return self._file.read(position, size)
        self._disk.before_wait("read of cold bytes")
        ahead_bytes = self._platters.rng.choice(READ_AHEAD_BYTES)
        return self._file.read(position, size, ahead_bytes=ahead_bytes)

    def read_cached(self, position: int, size: int) -> memoryview | None:
        self._disk.before_use()
        if position + size > len(self._file.data) or not self._file.is_cached(position, size):
            return None
        return memoryview(self._file.read(position, size))

    def size(self) -> int:
        self._disk.before_use()
        return len(self._file.data)

    def truncate(self, size: int) -> None:
        self._disk.before_change()
        self._platters.used_bytes -= len(self._file.data) - size
        self._file.truncate(size)
        self._platters.trace.note("truncate", self._file.number, size)

    def rewrite(self, position: int, data: Buffer) -> None:
        self._disk.before_wait("rewrite")
        self._disk.before_change()
        assert self._file.data[position : position + len(memoryview(data))] == data, "rewritten differently"
        self._file.rewrite(position, len(memoryview(data)))
        self._platters.trace.note("rewrite", self._file.number, position)

    def hear_former_errors(self) -> None:
        self._disk.before_wait("sync")
        self._platters.sync_file(self._file)
        self._hearing.take()

    def drop_cached(self) -> None:
        self._disk.before_wait("dropping what is cached")
        self._file.evict(self._platters.rng)

    def sync(self) -> None:
        self._disk.before_wait("sync")
        self._disk.before_change()
        self._disk.syncs.carry_out(self._sync)
        self._platters.trace.note("sync", self._file.number)

    def sync_by_kernel(self) -> int:
        """As `sync`, by the kernel itself: the `errno` of what went wrong, or 0."""
        self._disk.before_change()
        try:
            self._sync()
        except OSError as error:
            return error.errno or errno.EIO
        self._platters.trace.note("sync by kernel", self._file.number)
        return 0

    def _sync(self) -> None:
        self._platters.sync_file(self._file)
        self._platters.tell(self._hearing)


class SimulatedEverything:
    """The `Everything` port: one open description of the file system."""

    def __init__(self, disk: "SimulatedDisk") -> None:
        self._disk = disk
        self._hearing = Hearing(disk.platters.errors)

    def hear_former_errors(self) -> None:
        self._hearing.take()

    def sync(self) -> None:
        disk = self._disk
        disk.before_wait("sync of everything")
        disk.before_change()
        assert disk.can_sync_everything, "a sync of everything reaches nothing on this file system"
        disk.syncs.carry_out(self._sync)
        disk.platters.trace.note("sync everything")

    def _sync(self) -> None:
        platters = self._disk.platters
        platters.sync_everything()
        platters.tell(self._hearing)


class SimulatedDisk:
    """The `Disk` port of one life of a process."""

    def __init__(self, platters: Platters, process: Process, loop: "SimulatedLoop") -> None:
        self.platters = platters
        self.syncs = Syncs()
        self._process = process
        self._loop = loop
        self._everything = SimulatedEverything(self)
        queue = SimulatedSyncQueue(platters.draw_taken, self._carry_out_later, self._report_later)
        self._kernel_sync: KernelSync[SimulatedFile] = KernelSync(queue, self.syncs)
        queue.on_ended = self._kernel_sync.on_ended

    @property
    def can_be_full(self) -> bool:
        return True

    @property
    def can_sync_everything(self) -> bool:
        return self.platters.can_sync_everything

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        self.before_use()
        node = self.platters.find(path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.before_change()
            node = self.platters.create_file(path)
            self.platters.trace.note("create", path)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        return SimulatedFile(self, node)

    def exists(self, path: str) -> bool:
        self.before_use()
        return self.platters.find(path) is not None

    def list(self, path: str) -> list[str]:
        self.before_use()
        return sorted(self.platters.find_directory(path).entries)

    def make_directory(self, path: str) -> None:
        self.before_change()
        self.platters.make_directory(path)
        self.platters.trace.note("make directory", path)

    def rename(self, source: str, target: str) -> None:
        self.before_change()
        self.platters.rename(source, target)
        self.platters.trace.note("rename", source, target)

    def remove(self, path: str) -> None:
        self.before_change()
        self.platters.remove(path)
        self.platters.trace.note("remove", path)

    def sync_directory(self, path: str) -> None:
        self.before_wait("sync of a directory")
        self.before_change()
        self.syncs.carry_out(self.platters.find_directory(path).sync)
        self.platters.trace.note("sync directory", path)

    def begin_sync(self, files: Sequence[File]) -> "asyncio.Future[None] | None":
        self.before_use()
        own = [file for file in files if isinstance(file, SimulatedFile)]
        if not self.platters.has_kernel_syncs or len(own) < len(files):
            return None
        return self._kernel_sync.begin(own)

    async def drain(self) -> None:
        await self._kernel_sync.drain()

    def open_everything(self) -> SimulatedEverything:
        self.before_use()
        return SimulatedEverything(self)

    def hear_former_errors(self) -> None:
        self.before_wait("sync of everything")
        self.platters.sync_everything()
        self._everything.hear_former_errors()

    def sync_everything(self) -> None:
        self._everything.sync()

    def free_bytes(self, path: str) -> int:
        self.before_use()
        if self.platters.find(path) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
        return max(0, self.platters.capacity_bytes - self.platters.used_bytes)

    def total_bytes(self, path: str) -> int:
        self.before_use()
        if self.platters.find(path) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
        return CAPACITY_BYTES

    def lock(self, path: str) -> None:
        self.open(path, create=True)
        node = self.platters.find(path)
        assert isinstance(node, StoredFile)
        self.platters.lock(node, self._process, path)

    def close(self) -> None:
        self.before_use()
        self.platters.unlock(self._process)

    def before_use(self) -> None:
        if not self._process.alive:
            raise PowerCut

    def before_change(self) -> None:
        self.before_use()
        self.platters.on_change(self._process)

    def _carry_out_later(self, sync: Callable[[], None]) -> None:
        wait_s = draw_s(self.platters.rng, POOL_WORK_S_MAX)
        if self.platters.rng.random() < 0.7:
            wait_s += self.platters.stall_s(self._loop.time())
        self._loop.call_later(wait_s, self._carry_out, sync)

    def _carry_out(self, sync: Callable[[], None]) -> None:
        with suppress(PowerCut):
            sync()

    def _report_later(self, report: Callable[[], None]) -> None:
        delay_s = self.platters.stall_s(self._loop.time()) + draw_s(self.platters.rng, POOL_WORK_S_MAX)
        self._loop.call_later(delay_s, report)

    def before_wait(self, what: str) -> None:
        self.before_use()
        if not self.platters.is_waiting_allowed:
            error = BlockedTheLoop(f"{what} on the event loop of {self._process}")
            self._loop.fail(error)
            raise error


class SimulatedPool:
    """The `Pool` port: where waiting for the disk is allowed."""

    def __init__(self, platters: Platters, loop: "SimulatedLoop") -> None:
        self._platters = platters
        self._loop = loop
        self._under_way: dict[asyncio.Future[None], None] = {}

    def run(self, function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        if self._loop.exertion is not None:
            self._loop.exertion.on_errand(CURRENT.get(), function, arguments)
        future: asyncio.Future[T] = self._loop.create_future()
        wait_s = draw_s(self._platters.rng, POOL_WAIT_S_MAX)
        if self._platters.rng.random() < 0.7:  # a stall may come before the work or between it and its answer
            wait_s += self._platters.stall_s(self._loop.time())
        ended: asyncio.Future[None] = self._loop.create_future()
        self._under_way[ended] = None
        self._loop.call_later(wait_s, self._execute, future, ended, function, arguments)
        return future

    async def drain(self) -> None:
        if self._under_way:
            await asyncio.wait(list(self._under_way))

    def _execute(
        self,
        future: "asyncio.Future[T]",
        ended: "asyncio.Future[None]",
        function: Callable[..., T],
        arguments: tuple[object, ...],
    ) -> None:
        del self._under_way[ended]
        ended.set_result(None)
        self._platters.is_waiting_allowed = True
        self._platters.is_unawaited = future.cancelled()
        try:
            result = function(*arguments)
        except PowerCut:
            return
        except BaseException as error:  # noqa: BLE001  # whatever it is, it belongs to the one who waits
            self._answer(future, partial(future.set_exception, error))
        else:
            self._answer(future, partial(future.set_result, result))
        finally:
            self._platters.is_waiting_allowed = self._platters.is_unawaited = False

    def _answer(self, future: "asyncio.Future[T]", settle: Callable[[], None]) -> None:
        def deliver() -> None:
            if not future.cancelled():
                settle()

        delay_s = self._platters.stall_s(self._loop.time()) + draw_s(self._platters.rng, POOL_WORK_S_MAX)
        self._loop.call_later(delay_s, deliver)


def draw_s(rng: random.Random, seconds_max: float) -> float:
    slow = POOL_SLOW_FACTOR if rng.random() < POOL_SLOW_PROBABILITY else 1.0
    return rng.uniform(0.0, seconds_max) * slow
