"""A disk in memory: `storage=memory`, and the quick disk of the tests.

It keeps the promises of the `Disk` port as far as a process can: what is synced is as durable as the
process. Nothing is ever cold.

The loop and the threads of the pool use it at the same time, hence the locks. A file needs one because its bytes cannot
grow while somebody else's view of them is open.
"""

from errno import ENOENT
from os import strerror
from threading import Lock
from typing import Final

from typing_extensions import Buffer

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

    def sync(self) -> None:
        pass


class MemoryDisk:
    def __init__(self) -> None:
        self._files: dict[str, MemoryFile] = {}
        self._directories: set[str] = {"/"}
        self._locks: set[str] = set()
        self._changing = Lock()

    @property
    def can_sync_everything(self) -> bool:
        return True

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        with self._changing:
            file = self._files.get(path)
            if file is None:
                if not create or path.rpartition("/")[0] not in self._directories:
                    raise FileNotFoundError(ENOENT, strerror(ENOENT), path)
                file = self._files[path] = MemoryFile()
            return file

    def exists(self, path: str) -> bool:
        return path in self._files or path in self._directories

    def list(self, path: str) -> list[str]:
        if path not in self._directories:
            raise FileNotFoundError(ENOENT, strerror(ENOENT), path)
        inside = path.rstrip("/") + "/"
        with self._changing:
            names = (*self._files, *self._directories)
        return sorted(
            name[len(inside) :]
            for name in names
            if name.startswith(inside) and name != inside and "/" not in name[len(inside) :]
        )

    def make_directory(self, path: str) -> None:
        with self._changing:
            while path and path not in self._directories:
                self._directories.add(path)
                path = path.rpartition("/")[0]

    def rename(self, source: str, target: str) -> None:
        with self._changing:
            if source in self._files:
                self._files[target] = self._files.pop(source)
                return
            if source not in self._directories:
                raise FileNotFoundError(ENOENT, strerror(ENOENT), source)
            self._directories = {_moved(path, source, target) for path in self._directories}
            self._files = {_moved(path, source, target): file for path, file in self._files.items()}

    def remove(self, path: str) -> None:
        with self._changing:
            self._files.pop(path, None)
            if path in self._directories:
                inside = path + "/"
                self._directories = {d for d in self._directories if d != path and not d.startswith(inside)}
                self._files = {p: file for p, file in self._files.items() if not p.startswith(inside)}

    def sync_directory(self, path: str) -> None:
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


def _moved(path: str, source: str, target: str) -> str:
    if path == source or path.startswith(source + "/"):
        return target + path[len(source) :]
    return path
