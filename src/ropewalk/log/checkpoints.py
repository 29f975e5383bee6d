"""Small files that must never be wrong: replaced whole, checked when read.

The content stands in the file twice, a line each, every line with its own CRC32C. A flipped bit costs one of the
lines; only if both are damaged is the file refused, by name, because guessing here would mean cutting logs
that are whole.

    9f0c41d2 {"orders-0": {"topic_id": "…", "offset": 1200}}
    9f0c41d2 {"orders-0": {"topic_id": "…", "offset": 1200}}
"""

from typing import TypeVar

import msgspec
from crc32c import crc32c
from msgspec import Struct

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import Offset, TopicId, format_id, parse_id
from ropewalk.base.ports import Disk, read_whole, write_atomically

T = TypeVar("T")


def encode_checked(content: object) -> bytes:
    line = msgspec.json.encode(content)
    return b"%08x %b\n" % (crc32c(line), line) * 2


def read_checked(disk: Disk, path: str, content_type: type[T]) -> T | None:
    """None if there is no such file; `StorageFailed` if none of its lines can be believed."""
    try:
        data = read_whole(disk, path)
    except FileNotFoundError:
        return None
    half = len(data) // 2
    for copy in (data[:half], data[half:]):  # by length: a line's end may be what is damaged
        guard, _, content = copy[:-1].partition(b" ")
        if guard == b"%08x" % crc32c(content):
            try:
                return msgspec.json.decode(content, type=content_type)
            except msgspec.DecodeError:
                continue
    raise StorageFailed(f"{path} is damaged; restore it from a copy, or remove the node's data to start anew")


class _Entry(Struct, frozen=True, gc=False):
    topic_id: str
    offset: int


class CheckpointWrite:
    """A checkpoint on its way to the disk: taken on the event loop, run in the disk pool, one at a time per file."""

    __slots__ = ("_disk", "_entries", "path")

    def __init__(self, disk: Disk, path: str, entries: dict[str, _Entry]) -> None:
        self._disk = disk
        self.path = path
        self._entries = entries

    def offset_of(self, name: str) -> Offset:
        """By partition directory, what is durable once `run` has returned."""
        entry = self._entries.get(name)
        return Offset(0 if entry is None else entry.offset)

    def run(self) -> None:
        write_atomically(self._disk, self.path, encode_checked(self._entries))


class Checkpoint:
    """One offset per partition, kept in one file for the whole data directory.

    An entry carries the topic id, so that a topic that is deleted and made again does not inherit offsets.
    """

    __slots__ = ("_disk", "_entries", "_path", "existed")

    def __init__(self, disk: Disk, path: str) -> None:
        """Reads the file; blocks."""
        self._disk = disk
        self._path = path
        found = read_checked(disk, path, dict[str, _Entry])
        self.existed = found is not None
        """Whether there was such a file when the directory was opened."""
        self._entries = found or {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: str, topic_id: TopicId) -> Offset:
        """The last offset set for a partition; 0 if there is none."""
        entry = self._entries.get(name)
        if entry is None or entry.topic_id != format_id(topic_id):
            return Offset(0)
        return Offset(entry.offset)

    def holds(self, name: str, topic_id: TopicId) -> bool:
        """Whether there is an offset for the partition, 0 or any other."""
        entry = self._entries.get(name)
        return entry is not None and entry.topic_id == format_id(topic_id)

    def names(self) -> list[str]:
        return list(self._entries)

    def partitions(self) -> list[tuple[TopicId, int]]:
        """Topic id and index of those that have an offset."""
        return [
            (TopicId(parse_id(entry.topic_id)), int(name.rpartition("-")[2]))
            for name, entry in self._entries.items()
        ]

    def set(self, name: str, topic_id: TopicId, offset: Offset) -> None:
        """In memory only; `take` is the way to the disk."""
        self._entries[name] = _Entry(format_id(topic_id), offset)

    def drop(self, name: str) -> None:
        self._entries.pop(name, None)

    def take(self) -> CheckpointWrite:
        return CheckpointWrite(self._disk, self._path, self._entries.copy())
