"""Which logs of a data directory are known to be damaged, and where: one file, replaced whole.

What is damaged is found by recovery, by reads and by the scrub, and a copy that was given up for it must not count again
before it is whole. After a restart the same bytes would fail the same check, but nobody looks at them then: not after an
orderly stop, nor below a snapshot. So it is written down before anybody is told of it, and a log that is named here is never
taken as it was closed: what is said of it is looked at again (`recovery`).
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.ids import TopicId, format_id
from ropewalk.base.ports import Disk, write_atomically
from ropewalk.log.checkpoints import encode_checked, read_checked
from ropewalk.log.damage import DamagedRange


class _Entry(Struct, frozen=True):
    topic_id: str
    ranges: tuple[DamagedRange, ...]


class DamageWrite:
    """The file on its way to the disk: taken on the event loop, run in the disk pool, one at a time."""

    __slots__ = ("_disk", "_entries", "_path", "change_count")

    def __init__(self, disk: Disk, path: str, entries: dict[str, _Entry], change_count: int) -> None:
        self._disk = disk
        self._path = path
        self._entries = entries
        self.change_count = change_count

    def run(self) -> None:
        write_atomically(self._disk, self._path, encode_checked(self._entries))


class KnownDamage:
    __slots__ = ("_change_count", "_disk", "_entries", "_path", "_written_count")

    def __init__(self, disk: Disk, path: str) -> None:
        """Reads the file; blocks."""
        self._disk = disk
        self._path = path
        self._entries = read_checked(disk, path, dict[str, _Entry]) or {}
        self._change_count = 0
        self._written_count = 0

    @property
    def is_saved(self) -> bool:
        return self._change_count == self._written_count

    def find(self, name: str, topic_id: TopicId) -> tuple[DamagedRange, ...]:
        entry = self._entries.get(name)
        return () if entry is None or entry.topic_id != format_id(topic_id) else entry.ranges

    def note(self, name: str, topic_id: TopicId, ranges: Sequence[DamagedRange]) -> None:
        """In memory only; `take` is the way to the disk."""
        if not ranges:
            self.drop(name)
        elif self.find(name, topic_id) != tuple(ranges):
            self._entries[name] = _Entry(format_id(topic_id), tuple(ranges))
            self._change_count += 1

    def drop(self, name: str) -> None:
        if self._entries.pop(name, None) is not None:
            self._change_count += 1

    def take(self) -> DamageWrite:
        return DamageWrite(self._disk, self._path, self._entries.copy(), self._change_count)

    def on_written(self, write: DamageWrite) -> None:
        self._written_count = write.change_count
