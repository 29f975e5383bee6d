"""Room that is kept back on the disk, so that a disk that is full can still be emptied.

Whatever makes room has to write first: where a log starts now, that a topic is deleted, who decides after a restart. A file
beside the data takes up room for that. When such a write meets a full disk, a slice of the file is given up and the
write tried again. Everybody else is refused (`is_full`) from the first write that met the end of the disk until the
reserve is whole again and there is as much room beside it.

What a reader could get wrong
    The file is given up in slices, because others may use the disk: whatever fills it takes what is freed, too.
    A part of it is for what deletes alone. What only keeps a node going must not use up what would end the plight.
    Its bytes are random: on a file system that compresses, zeros would reserve nothing.
    That there is room is known when the room has been taken, and given back. A quota is not in the figures of a file system.
    The disk pool and the event loop use it at the same time, hence the lock. It is held for one write of a piece at most.
"""

import asyncio
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

from typing_extensions import Buffer

from ropewalk.base.limits import (
    RESERVE_PARTITION_BYTES,
    RESERVE_PIECE_BYTES,
    RESERVE_SHARE_MAX,
    RESERVE_SLICES,
)
from ropewalk.base.ports import Disk, Everything, File, Rng
from ropewalk.base.reserve import Purpose, is_no_room
from ropewalk.base.syncs import Syncs

T = TypeVar("T")


class FileReserve:
    """Of one data directory. Nothing is written before the first `look`."""

    is_kept = True

    def __init__(self, disk: Disk, directory: str, rng: Rng, *, bytes_min: int) -> None:
        """`bytes_min`: however few partitions there are."""
        self._disk = disk
        self._directory = directory
        self._rng = rng
        self._bytes_min = bytes_min
        self._share_bytes = 0
        """What a small file system can spare; 0 until it is asked for."""
        self._lock = Lock()
        self._refusal_count = 0
        self._file: File | None = None
        self.whole_bytes = 0
        """How large it is to be; known after the first `look`."""
        self.size_bytes = 0
        self._largest_bytes = 0
        """What it has been in this life: parts of it are parts of that."""
        self.is_full = False
        """Whether whoever has no right to the reserve is refused."""
        if disk.exists(self.path):
            self._file = disk.open(self.path)
            self.size_bytes = self._largest_bytes = self._file.size()

    @property
    def path(self) -> str:
        return f"{self._directory}/reserve"

    @property
    def is_whole(self) -> bool:
        return self.size_bytes >= self.whole_bytes

    def disk_for(self, purpose: Purpose) -> Disk:
        return ReservedDisk(self._disk, self, purpose)

    def file_for(self, file: File, purpose: Purpose) -> File:
        return ReservedFile(file, self, purpose)

    def on_no_room(self) -> None:
        with self._lock:
            self._refusal_count += 1
            self.is_full = True

    def give_up(self, purpose: Purpose) -> bool:
        """Make a slice of room for another attempt; False where there is nothing left for that purpose."""
        with self._lock:
            self._refusal_count += 1
            self.is_full = True
            floor_bytes = int(self._largest_bytes * purpose.value)
            if self._file is None or self.size_bytes <= floor_bytes:
                return False
            slice_bytes = max(1, self._largest_bytes // RESERVE_SLICES)
            self.size_bytes = max(floor_bytes, self.size_bytes - slice_bytes)
            self._file.truncate(self.size_bytes)
            return True

    def look(self, *, partition_count: int) -> None:
        if not self._share_bytes:
            self._share_bytes = self._disk.total_bytes(self._directory) // RESERVE_SHARE_MAX
        wanted_bytes = self._bytes_min + RESERVE_PARTITION_BYTES * partition_count
        with self._lock:
            refusal_count = self._refusal_count
            self.whole_bytes = max(1, min(wanted_bytes, self._share_bytes))
            if self.is_whole and not self.is_full:
                return
        # What was full has to show that there is room beside the reserve; what was not is just made larger.
        beside_bytes = self.whole_bytes if self.is_full else 0
        missing_bytes = max(0, self.whole_bytes - self.size_bytes)
        has_room = self._disk.free_bytes(self._directory) >= missing_bytes + self.whole_bytes
        if has_room:
            has_room = self._extend(self.whole_bytes + beside_bytes, refusal_count)
        elif missing_bytes:
            self._extend(self.whole_bytes, refusal_count)  # what comes free is for whoever deletes next
        with self._lock:
            if not has_room:
                self.is_full = True
            elif self._refusal_count == refusal_count:
                self.is_full = False

    def _extend(self, end_bytes: int, refusal_count: int) -> bool:
        """Whether the file could grow to `end_bytes`, and nobody was refused meanwhile. It is no larger than whole afterwards."""
        try:
            file = self._file or self._disk.open(self.path, create=True)
        except OSError as error:
            if not is_no_room(error):
                raise
            return False
        before_bytes = self.size_bytes
        with self._lock:
            self._file = file
        grown_bytes, could_grow = file.size(), True
        while grown_bytes < end_bytes and could_grow:
            piece = self._rng.randbytes(min(RESERVE_PIECE_BYTES, end_bytes - grown_bytes))
            with self._lock:
                taken = self._append(file, piece) if self._refusal_count == refusal_count else 0
            grown_bytes += taken
            could_grow = taken == len(piece)
        with self._lock:
            if self._refusal_count == refusal_count:
                self.size_bytes = min(self.whole_bytes, grown_bytes)
                self._largest_bytes = max(self._largest_bytes, self.size_bytes)
            file.truncate(self.size_bytes)
        if self.size_bytes > before_bytes:  # it must be there after a power cut
            file.sync()
            self._disk.sync_directory(self._directory)
        return could_grow

    @staticmethod
    def _append(file: File, piece: bytes) -> int:
        try:
            return file.append(piece)
        except OSError as error:
            if not is_no_room(error):
                raise
            return 0


class ReservedFile:
    """The `File` port, for a write that may use the reserve."""

    __slots__ = ("_file", "_purpose", "_reserve")

    def __init__(self, file: File, reserve: FileReserve, purpose: Purpose) -> None:
        self._file = file
        self._reserve = reserve
        self._purpose = purpose

    def append(self, data: Buffer) -> int:
        with memoryview(data) as view, view.cast("B") as octets:
            taken = 0
            while taken < len(octets):
                try:
                    taken += self._file.append(octets[taken:])
                except OSError as error:
                    if not is_no_room(error):
                        raise
                    if not self._reserve.give_up(self._purpose):
                        if taken:
                            break
                        raise
            return taken

    def read(self, position: int, size: int) -> bytes:
        return self._file.read(position, size)

    def read_cached(self, position: int, size: int) -> bytes | memoryview | None:
        return self._file.read_cached(position, size)

    def size(self) -> int:
        return self._file.size()

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def rewrite(self, position: int, data: Buffer) -> None:
        _spend(self._reserve, self._purpose, lambda: self._file.rewrite(position, data))

    def hear_former_errors(self) -> None:
        self._file.hear_former_errors()

    def drop_cached(self) -> None:
        self._file.drop_cached()

    def sync(self) -> None:
        self._file.sync()


class ReservedDisk:
    """The `Disk` port, for writes that may use the reserve."""

    def __init__(self, disk: Disk, reserve: FileReserve, purpose: Purpose) -> None:
        self._disk = disk
        self._reserve = reserve
        self._purpose = purpose

    @property
    def syncs(self) -> Syncs:
        return self._disk.syncs

    @property
    def can_be_full(self) -> bool:
        return self._disk.can_be_full

    @property
    def can_sync_everything(self) -> bool:
        return self._disk.can_sync_everything

    def open(self, path: str, *, create: bool = False) -> File:
        file = self._spend(lambda: self._disk.open(path, create=create))
        return ReservedFile(file, self._reserve, self._purpose)

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def list(self, path: str) -> list[str]:
        return self._disk.list(path)

    def make_directory(self, path: str) -> None:
        self._spend(lambda: self._disk.make_directory(path))

    def rename(self, source: str, target: str) -> None:
        self._spend(lambda: self._disk.rename(source, target))

    def remove(self, path: str) -> None:
        self._disk.remove(path)

    def sync_directory(self, path: str) -> None:
        self._disk.sync_directory(path)

    def begin_sync(self, files: Sequence[File]) -> "asyncio.Future[None] | None":
        return self._disk.begin_sync(files)

    async def drain(self) -> None:
        await self._disk.drain()

    def open_everything(self) -> Everything:
        return self._disk.open_everything()

    def hear_former_errors(self) -> None:
        self._disk.hear_former_errors()

    def sync_everything(self) -> None:
        self._disk.sync_everything()

    def free_bytes(self, path: str) -> int:
        return self._disk.free_bytes(path)

    def total_bytes(self, path: str) -> int:
        return self._disk.total_bytes(path)

    def lock(self, path: str) -> None:
        self._disk.lock(path)

    def close(self) -> None:
        self._disk.close()

    def _spend(self, work: Callable[[], T]) -> T:
        return _spend(self._reserve, self._purpose, work)


def _spend(reserve: FileReserve, purpose: Purpose, work: Callable[[], T]) -> T:
    while True:
        try:
            return work()
        except OSError as error:
            if not is_no_room(error) or not reserve.give_up(purpose):
                raise
