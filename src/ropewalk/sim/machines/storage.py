"""Files and directories as a machine really has them: a page cache above a platter.

A `StoredFile` holds the bytes a process sees, plus the list of changes that the platter may not have yet.
A power cut undoes those changes and redoes a seeded part of them, so nothing is copied while all goes well.

What a reader could get wrong
    Pages are cold (only on the platter) or warm (cached). In a cold page `data` is what the platter holds.
    A warm page may differ from the platter without being dirty: `_latent` holds what the platter has there,
    and it shows when the page goes cold. Bit rot and failed syncs are made of this.
    A new file's bytes, its name, and its directory's name are made durable by three different calls.
"""

import random
from typing import Final

from msgspec import Struct

from ropewalk.sim.machines.sometimes import Sometimes

PAGE_BYTES: Final = 4096
SECTOR_BYTES: Final = 512


class Appended(Struct, frozen=True, gc=False):
    position: int
    size: int


class Truncated(Struct, frozen=True, gc=False):
    size: int
    removed: bytes


class Rewritten(Struct, frozen=True, gc=False):
    """Bytes that were written again as they stood: dirty, but nothing is lost if they do not arrive."""

    position: int
    size: int


class WriteBackErrors:
    """Of a file, or of a whole file system, as Linux keeps them. Each is told once to every open description."""

    __slots__ = ("code", "count", "is_seen")

    def __init__(self) -> None:
        self.count = 0
        self.code = 0
        """The `errno` of the last one."""
        self.is_seen = False
        """Whether anybody has been told of the last one."""

    def add(self, code: int) -> None:
        self.count += 1
        self.code = code
        self.is_seen = False


class Hearing:
    """What one open description has heard. One that is opened hears of an error that nobody has been told of, and of no other."""

    __slots__ = ("_errors", "_heard_count")

    def __init__(self, errors: WriteBackErrors) -> None:
        self._errors = errors
        self._heard_count = errors.count if errors.is_seen else 0

    def take(self) -> int:
        """The `errno` of what has not been heard yet; 0 if there is nothing."""
        errors = self._errors
        if self._heard_count == errors.count:
            return 0
        self._heard_count, errors.is_seen = errors.count, True
        return errors.code


class StoredFile:
    __slots__ = ("_changes", "_cold", "_latent", "_unwritten", "data", "errors", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.data = bytearray()
        self.errors = WriteBackErrors()
        self._changes: list[Appended | Truncated | Rewritten] = []
        self._cold: set[int] = set()
        self._latent: dict[int, list[tuple[int, bytes]]] = {}
        self._unwritten: set[int] = set()
        """Pages whose write-back failed. As on ext4 it is of no use to write them again, before they have gone cold."""

    @property
    def is_dirty(self) -> bool:
        return bool(self._changes)

    @property
    def durable_bytes(self) -> int:
        """Below this position the platter has what was written."""
        floor = len(self.data)
        for change in self._changes:
            match change:
                case Appended(position):
                    floor = min(floor, position)
                case Truncated(size):
                    floor = min(floor, size)
        return floor

    def append(self, data: bytes | memoryview) -> None:
        position = len(self.data)
        self._cold.discard(position // PAGE_BYTES)  # the kernel reads the page before it changes a part of it
        self.data += data
        self._changes.append(Appended(position, len(data)))

    def truncate(self, size: int) -> None:
        removed = bytes(self.data[size:])
        if size > len(self.data):
            raise ValueError(f"cannot truncate {len(self.data)} bytes to {size}")
        del self.data[size:]
        self._changes.append(Truncated(size, removed))
        page_count = -(-size // PAGE_BYTES)
        self._cold = {page for page in self._cold if page < page_count}
        self._latent = {page: patches for page, patches in self._latent.items() if page < page_count}
        self._unwritten = {page for page in self._unwritten if page < page_count}

    def rewrite(self, position: int, size: int) -> None:
        self._cold.difference_update(_pages(position, size))
        self._changes.append(Rewritten(position, size))

    def is_cached(self, position: int, size: int) -> bool:
        return not self._cold or self._cold.isdisjoint(_pages(position, min(size, len(self.data) - position)))

    def read(self, position: int, size: int, *, ahead_bytes: int = 0) -> bytes:
        """Reading warms the pages, and as many after them as the kernel reads ahead."""
        if self._cold:
            self._cold.difference_update(_pages(position, min(size + ahead_bytes, len(self.data) - position)))
        return bytes(self.data[position : position + size])

    def sync(self) -> None:
        for change in self._changes:
            if isinstance(change, Appended | Rewritten):
                for page in _pages(change.position, change.size):
                    if page not in self._unwritten:
                        self._latent.pop(page, None)  # the whole page is written again
        self._changes.clear()

    def fail_sync(self, rng: random.Random) -> None:
        """As Linux does it: the pages are called clean, the cache still shows them, the platter lacks some."""
        for change in self._changes:
            if isinstance(change, Appended) and change.position + change.size <= len(self.data):
                for page in _pages(change.position, change.size):
                    if rng.random() < 0.7:
                        start = max(change.position, page * PAGE_BYTES)
                        end = min(change.position + change.size, (page + 1) * PAGE_BYTES)
                        self._latent.setdefault(page, []).append((start, bytes(end - start)))
                        self._unwritten.add(page)
        self._changes.clear()

    def evict(self, rng: random.Random, *, share: float = 1.0) -> None:
        """Clean pages go cold, each with the probability `share`."""
        page_count = self.durable_bytes // PAGE_BYTES if self._changes else -(-len(self.data) // PAGE_BYTES)
        for page in range(page_count):
            if rng.random() < share:
                self._chill(page)

    def rot(self, position: int, mask: int) -> None:
        """Flip bits of a durable byte on the platter; a cached page shows it only after it went cold."""
        assert position < self.durable_bytes
        assert mask
        page = position // PAGE_BYTES
        if page in self._cold:
            self.data[position] ^= mask
        else:
            self._latent.setdefault(page, []).append((position, bytes([self.data[position] ^ mask])))

    def on_platter(self, position: int) -> int:
        """The byte that the platter has there, whatever the cache shows."""
        value = self.data[position]
        for start, patch in self._latent.get(position // PAGE_BYTES, ()):
            if start <= position < start + len(patch):
                value = patch[position - start]
        return value

    def lose_power(self, rng: random.Random, sometimes: Sometimes) -> None:
        """Leave what the platter has: everything synced, and of the rest a seeded outcome."""
        self.errors = WriteBackErrors()
        if self._changes:
            floor = self._redo(self._undo(), rng, sometimes)
            self._punch_holes(floor, rng, sometimes)
        self._changes.clear()
        for page in range(-(-len(self.data) // PAGE_BYTES)):
            self._chill(page)

    def _undo(self) -> list[bytes | int]:
        """Back to the last sync. Returns the changes, oldest first: bytes appended, or the size cut back to."""
        undone: list[bytes | int] = []
        for change in reversed(self._changes):
            match change:
                case Appended(position):
                    undone.append(bytes(self.data[position:]))
                    del self.data[position:]
                case Truncated(size, removed):
                    self.data += removed
                    undone.append(size)
                case Rewritten():
                    pass
        undone.reverse()
        return undone

    def _redo(self, changes: list[bytes | int], rng: random.Random, sometimes: Sometimes) -> int:
        """Let a first part of the changes happen after all; returns where unsynced content begins."""
        floor = len(self.data)
        fate = rng.random()
        kept_count = len(changes) if fate < 0.3 else 0 if fate < 0.5 else rng.randrange(len(changes) + 1)
        for change in changes[:kept_count]:
            if isinstance(change, int):
                del self.data[change:]
                floor = min(floor, change)
            else:
                self.data += change
        if kept_count < len(changes) and rng.random() < 0.5:
            torn = changes[kept_count]
            if not isinstance(torn, int):
                torn_bytes = _tear(len(self.data), len(torn), rng)
                self.data += torn[:torn_bytes]
                if torn_bytes:
                    sometimes.note("a write was torn")
        if any(isinstance(change, int) for change in changes[kept_count:]):
            sometimes.note("a truncation was undone")
        return floor

    def _punch_holes(self, floor: int, rng: random.Random, sometimes: Sometimes) -> None:
        """The size was extended before the content arrived: unsynced blocks that never made it read as zeros."""
        fate = rng.random()
        if fate < 0.6:
            return
        lost_share = 1.0 if fate < 0.7 else rng.uniform(0.1, 0.9)
        block_bytes = PAGE_BYTES if rng.random() < 0.7 else SECTOR_BYTES
        has_hole = False
        for block in range(floor // block_bytes, -(-len(self.data) // block_bytes)):
            if rng.random() >= lost_share:
                if has_hole:
                    sometimes.note("unsynced blocks were lost before later ones")
                has_hole = False
            else:
                has_hole = True
                start = max(floor, block * block_bytes)
                end = min(len(self.data), (block + 1) * block_bytes)
                self.data[start:end] = bytes(end - start)
        if has_hole:
            sometimes.note("unsynced content was lost and its size was not")

    def _chill(self, page: int) -> None:
        self._cold.add(page)
        self._unwritten.discard(page)
        for position, patch in self._latent.pop(page, ()):
            if position < len(self.data):
                self.data[position : position + len(patch)] = patch[: len(self.data) - position]


class Linked(Struct, frozen=True):
    name: str
    node: "StoredFile | Directory"


class Unlinked(Struct, frozen=True):
    name: str


class Renamed(Struct, frozen=True):
    source: str
    target: str


class Directory:
    """Names as processes see them, and as the platter had them at the last sync."""

    __slots__ = ("_changes", "_durable", "entries")

    def __init__(self) -> None:
        self.entries: dict[str, StoredFile | Directory] = {}
        self._durable: dict[str, StoredFile | Directory] = {}
        self._changes: list[Linked | Unlinked | Renamed] = []

    @property
    def is_dirty(self) -> bool:
        return bool(self._changes)

    def change(self, change: Linked | Unlinked | Renamed) -> None:
        _apply(self.entries, change)
        self._changes.append(change)

    def sync(self) -> None:
        self._durable = dict(self.entries)
        self._changes.clear()

    def lose_power(self, rng: random.Random, sometimes: Sometimes) -> None:
        """Names change on the platter in the order they were changed; how far that came is seeded."""
        fate = rng.random()
        if fate >= 0.3:
            kept_count = 0 if fate < 0.6 else rng.randrange(len(self._changes) + 1)
            for change in self._changes[:kept_count]:
                _apply(self._durable, change)
            for change in self._changes[kept_count:]:
                sometimes.note(
                    "a rename was lost" if isinstance(change, Renamed) else "unsynced names were lost"
                )
            self.entries = dict(self._durable)
        self.sync()
        for name in sorted(self.entries):
            self.entries[name].lose_power(rng, sometimes)


def _apply(entries: dict[str, StoredFile | Directory], change: Linked | Unlinked | Renamed) -> None:
    match change:
        case Linked(name, node):
            entries[name] = node
        case Unlinked(name):
            del entries[name]
        case Renamed(source, target):
            entries[target] = entries.pop(source)


def _pages(position: int, size: int) -> range:
    if size <= 0:
        return range(0)
    return range(position // PAGE_BYTES, (position + size - 1) // PAGE_BYTES + 1)


def _tear(position: int, size: int, rng: random.Random) -> int:
    """How much of a write at `position` arrived: up to a block boundary of the device, or nothing."""
    block_bytes = PAGE_BYTES if rng.random() < 0.5 else SECTOR_BYTES
    first = position // block_bytes + 1
    last = (position + size - 1) // block_bytes
    if last < first:
        return 0
    return rng.randrange(first, last + 1) * block_bytes - position
