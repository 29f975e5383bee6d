"""A tree of files that remembers which bytes and which names have been synced.

What a power cut leaves is what was synced: a file's bytes by syncing the file, a name (its creation, its removal,
both ends of its move) by syncing the directory it is in. A file that was synced under a name that was not is gone.

A `torn` cut is the other thing that real disks do: of everything unsynced, each piece may have made it or not.
A file keeps any part of its unsynced tail, a directory any of its unsynced names. Programs must be right under both.
"""

import errno
import os
from random import Random


class File:
    """`content` is what programs see, `durable` what a power cut leaves."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = bytearray()
        self._dirty_from = 0
        """Below this both are the same, so that syncing a long file costs only what was added."""

    def write(self, data: bytes, offset: int) -> None:
        if offset > len(self.content):
            self.content.extend(bytes(offset - len(self.content)))
        self._dirty_from = min(self._dirty_from, offset, len(self.content))
        self.content[offset : offset + len(data)] = data

    def truncate(self, size: int) -> None:
        self._dirty_from = min(self._dirty_from, size, len(self.content))
        del self.content[size:]
        self.content.extend(bytes(size - len(self.content)))

    def sync(self) -> None:
        del self.durable[self._dirty_from :]
        self.durable += self.content[self._dirty_from :]
        self._dirty_from = len(self.content)

    def cut(self, torn: Random | None) -> int:
        """Returns the bytes that were lost."""
        before = len(self.content)
        if torn is not None and self.content.startswith(self.durable):
            kept = torn.choice((0, torn.random(), 1))
            unsynced = len(self.content) - len(self.durable)
            self.durable = self.content[: len(self.durable) + round(unsynced * kept)]
        self.content = bytearray(self.durable)
        self._dirty_from = len(self.content)
        return max(0, before - len(self.content))


class Directory:
    def __init__(self) -> None:
        self.entries: dict[str, File | Directory] = {}
        self.durable: dict[str, File | Directory] = {}

    def sync(self) -> None:
        self.durable = dict(self.entries)

    def cut(self, torn: Random | None) -> int:
        """Returns the bytes that were lost in here and below."""
        if torn is not None:
            for name in sorted({*self.entries, *self.durable}):
                if torn.random() < 0.5:
                    _set(self.durable, name, self.entries.get(name))
        gone = [entry for name, entry in self.entries.items() if self.durable.get(name) is not entry]
        lost_bytes = sum(len(entry.content) for entry in gone if isinstance(entry, File))
        self.entries = dict(self.durable)
        return lost_bytes + sum(self.entries[name].cut(torn) for name in sorted(self.entries))


def _set(entries: dict[str, File | Directory], name: str, entry: File | Directory | None) -> None:
    if entry is None:
        entries.pop(name, None)
    else:
        entries[name] = entry


class LossyTree:
    """Paths start with `/`. Errors are `OSError` with the usual `errno`."""

    def __init__(self) -> None:
        self.root = Directory()
        self.lost_bytes = 0

    def power_cut(self, torn: Random | None = None) -> None:
        self.lost_bytes += self.root.cut(torn)

    def find(self, path: str) -> File | Directory:
        entry: File | Directory = self.root
        for name in path.split("/"):
            if name:
                if not isinstance(entry, Directory):
                    raise _error(errno.ENOTDIR, path)
                found = entry.entries.get(name)
                if found is None:
                    raise _error(errno.ENOENT, path)
                entry = found
        return entry

    def file(self, path: str) -> File:
        entry = self.find(path)
        if isinstance(entry, Directory):
            raise _error(errno.EISDIR, path)
        return entry

    def directory(self, path: str) -> Directory:
        entry = self.find(path)
        if not isinstance(entry, Directory):
            raise _error(errno.ENOTDIR, path)
        return entry

    def create(self, path: str) -> File:
        parent, name = self._parent(path)
        if name in parent.entries:
            raise _error(errno.EEXIST, path)
        file = parent.entries[name] = File()
        return file

    def make_directory(self, path: str) -> None:
        parent, name = self._parent(path)
        if name in parent.entries:
            raise _error(errno.EEXIST, path)
        parent.entries[name] = Directory()

    def remove(self, path: str) -> None:
        self.file(path)
        parent, name = self._parent(path)
        del parent.entries[name]

    def remove_directory(self, path: str) -> None:
        if self.directory(path).entries:
            raise _error(errno.ENOTEMPTY, path)
        parent, name = self._parent(path)
        del parent.entries[name]

    def rename(self, source: str, target: str) -> None:
        entry = self.find(source)
        source_parent, source_name = self._parent(source)
        target_parent, target_name = self._parent(target)
        replaced = target_parent.entries.get(target_name)
        if isinstance(replaced, Directory) and replaced.entries:
            raise _error(errno.ENOTEMPTY, target)
        del source_parent.entries[source_name]
        target_parent.entries[target_name] = entry

    def _parent(self, path: str) -> tuple[Directory, str]:
        parent, _, name = path.rpartition("/")
        return self.directory(parent or "/"), name


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
