"""A disk in memory: `storage=memory`, and the quick disk of the tests.

It keeps the promises of the `Disk` port as far as a process can: what is synced is as durable as the
process. Nothing is ever cold.

The loop and the threads of the pool use it at the same time, hence the locks. A file needs one because its bytes cannot
grow while somebody else's view of them is open.
"""

from collections.abc import Sequence
from errno import EEXIST, ENOENT
from os import strerror
from threading import Lock
from typing import Final

from typing_extensions import Buffer

from ropewalk.base.ports import File
from ropewalk.base.syncs import Syncs

FREE_BYTES: Final = 1 << 40  # memory has no free-space figure of its own; retention bounds it


class MemoryFile:
    __slots__ = ("_content", "_lock")

    def __init__(self) -> None:
        self._content = bytearray()
        self._lock = Lock()

    def append(self, data: Buffer) -> int:
        with self._lock:
            before = len(self._content)
            self._content += data
            return len(self._content) - before

    def read(self, position: int, size: int) -> bytes:
        with self._lock, memoryview(self._content) as view:
            return bytes(view[position : position + size])

    def read_cached(self, position: int, size: int) -> bytes:
        return self.read(position, size)

    def size(self) -> int:
        return len(self._content)

    def truncate(self, size: int) -> None:
        with self._lock:
            del self._content[size:]
            self._content.extend(bytes(size - len(self._content)))

    def rewrite(self, position: int, data: Buffer) -> None:
        pass

    def hear_former_errors(self) -> None:
        pass

    def drop_cached(self) -> None:
        pass

    def sync(self) -> None:
        pass


class MemoryEverything:
    def sync(self) -> None:
        pass


class _Directory(dict[str, "MemoryFile | _Directory"]):
    """What is in a directory, by name: nothing that is done to one depends on how many others there are."""

    __slots__ = ()


class MemoryDisk:
    def __init__(self) -> None:
        self.syncs = Syncs()
        self._root = _Directory()
        self._locks: set[str] = set()
        self._changing = Lock()

    @property
    def can_be_full(self) -> bool:
        """What was kept back would be memory of the process, and deleting needs none of it."""
        return False

    @property
    def can_sync_everything(self) -> bool:
        return True

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        with self._changing:
            inside, name = self._place(path)
            found = None if inside is None else inside.get(name)
            if isinstance(found, MemoryFile):
                return found
            if inside is None or found is not None or not create:
                raise FileNotFoundError(ENOENT, strerror(ENOENT), path)
            file = inside[name] = MemoryFile()
            return file

    def put(self, path: str, file: MemoryFile) -> None:
        """Have this file there, whatever it does: for tests of a disk that fails."""
        with self._changing:
            inside, name = self._place(path)
            assert inside is not None, "the directory is there"
            inside[name] = file

    def exists(self, path: str) -> bool:
        with self._changing:
            return self._find(path) is not None

    def list(self, path: str) -> list[str]:
        with self._changing:
            found = self._find(path)
            if not isinstance(found, _Directory):
                raise FileNotFoundError(ENOENT, strerror(ENOENT), path)
            return sorted(found)

    def make_directory(self, path: str) -> None:
        with self._changing:
            inside = self._root
            for name in _names(path):
                found = inside.setdefault(name, _Directory())
                if not isinstance(found, _Directory):
                    raise FileExistsError(EEXIST, strerror(EEXIST), path)
                inside = found

    def rename(self, source: str, target: str) -> None:
        with self._changing:
            inside, name = self._place(source)
            to, new_name = self._place(target)
            if inside is None or name not in inside or to is None:
                raise FileNotFoundError(ENOENT, strerror(ENOENT), source)
            to[new_name] = inside.pop(name)

    def remove(self, path: str) -> None:
        with self._changing:
            inside, name = self._place(path)
            if inside is not None:
                inside.pop(name, None)

    def _find(self, path: str) -> "MemoryFile | _Directory | None":
        found: MemoryFile | _Directory | None = self._root
        for name in _names(path):
            if not isinstance(found, _Directory):
                return None
            found = found.get(name)
        return found

    def _place(self, path: str) -> "tuple[_Directory | None, str]":
        """The directory that a path is in, if there is one, and the name there."""
        parent, _, name = path.rstrip("/").rpartition("/")
        inside = self._find(parent)
        return inside if isinstance(inside, _Directory) else None, name

    def sync_directory(self, path: str) -> None:
        pass

    def begin_sync(self, files: Sequence[File]) -> None:  # noqa: ARG002  a thread does, there is nothing to wait for
        return None

    async def drain(self) -> None:
        pass

    def open_everything(self) -> MemoryEverything:
        return MemoryEverything()

    def hear_former_errors(self) -> None:
        pass

    def sync_everything(self) -> None:
        pass

    def free_bytes(self, path: str) -> int:  # noqa: ARG002  the port names a place; memory is one place
        return FREE_BYTES

    def total_bytes(self, path: str) -> int:  # noqa: ARG002  as above
        return FREE_BYTES

    def lock(self, path: str) -> None:
        if path in self._locks:
            raise BlockingIOError(f"{path} is locked")
        self._locks.add(path)

    def close(self) -> None:
        self._locks.clear()


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]
