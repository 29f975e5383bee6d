"""The aborted transactions of one partition, of which readers of committed records must hear.

The latest are kept in memory, and go into every snapshot. Whenever enough have come together, a snapshot writes them to a
file of their own (a chunk), once and for good, and they are read from there on demand.

    <first marker>.aborted      guard, then the transactions in the order of their markers

Invariants
    A chunk is durable before the snapshot that counts on it. A snapshot whose chunks are not as it remembers them is of
    no use; without any the log is read again, and that comes to the same transactions.
    Whatever lies below the floor has no records left in the log, because it was deleted or compacted, and is not told of.
    A reader that was told of it, and that never meets its marker, would pass over whatever its producer wrote next.

What a reader could get wrong
    A transaction belongs where its marker is. One that is asked for by its records may be found far behind them.
"""

from bisect import bisect_left
from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

import msgspec
from crc32c import crc32c
from msgspec import Struct

from ropewalk.base.errors import StorageFailed
from ropewalk.base.limits import ABORTED_CHUNK_COUNT
from ropewalk.base.ports import Disk, read_whole, write_atomically
from ropewalk.log.segment import path_of

ABORTED_SUFFIX: Final = ".aborted"

_HEADER: Final = Layout("<4sI")
_MAGIC: Final = b"RWA1"


class AbortedTransaction(Struct, frozen=True, gc=False, array_like=True):
    producer_id: int
    first_offset: int
    last_offset: int
    """Of its marker."""


class Chunk(Struct, frozen=True, gc=False, array_like=True):
    """What is remembered of a file."""

    name_offset: int
    first_offset: int
    """The smallest first offset in it."""

    last_offset: int
    guard: int

    def overlaps(self, start_offset: int, end_offset: int) -> bool:
        return self.last_offset >= start_offset and self.first_offset < end_offset


class SavedAborted(Struct, frozen=True, array_like=True):
    """As a snapshot keeps them."""

    floor_offset: int = 0
    chunks: list[Chunk] = []
    recent: list[AbortedTransaction] = []

    def mentions(self, start_offset: int, end_offset: int) -> bool:
        """Whether a marker in that range is spoken of."""
        start_offset = max(start_offset, self.floor_offset)
        return any(
            chunk.last_offset >= start_offset and chunk.name_offset < end_offset for chunk in self.chunks
        ) or any(start_offset <= each.last_offset < end_offset for each in self.recent)


class ChunkWrite:
    """A chunk on its way to the disk."""

    __slots__ = ("chunk", "data")

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        payload = msgspec.msgpack.encode(transactions)
        guard = crc32c(payload)
        self.data = _HEADER.pack(_MAGIC, guard) + payload
        self.chunk = Chunk(
            transactions[0].last_offset,
            min([each.first_offset for each in transactions]),
            transactions[-1].last_offset,
            guard,
        )

    def run(self, disk: Disk, directory: str) -> None:
        write_atomically(disk, path_of(directory, self.chunk.name_offset, ABORTED_SUFFIX), self.data)


class AbortedLookup:
    """The transactions that a reader of a range must hear of, as things were when it asked."""

    __slots__ = ("_chunks", "_directory", "_disk", "_end_offset", "_recent", "_start_offset")

    def __init__(
        self,
        disk: Disk,
        directory: str,
        chunks: Sequence[Chunk],
        recent: tuple[AbortedTransaction, ...],
        *,
        start_offset: int,
        end_offset: int,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._chunks = chunks
        self._recent = recent
        self._start_offset = start_offset
        self._end_offset = end_offset

    def narrowed(self, end_offset: int) -> "AbortedLookup":
        """The same for a range that ends at `end_offset`, or as before if that is later."""
        end_offset = min(end_offset, self._end_offset)
        return AbortedLookup(
            self._disk,
            self._directory,
            [chunk for chunk in self._chunks if chunk.overlaps(self._start_offset, end_offset)],
            tuple([each for each in self._recent if each.first_offset < end_offset]),
            start_offset=self._start_offset,
            end_offset=end_offset,
        )

    @property
    def at_hand(self) -> tuple[AbortedTransaction, ...] | None:
        """The answer, unless files must be read for it."""
        return None if self._chunks else self._recent

    def run(self) -> tuple[AbortedTransaction, ...]:
        """The answer, in the order of the markers. Blocks. Raises `StorageFailed` where a file is not as it was written."""
        found: list[AbortedTransaction] = []
        for chunk in self._chunks:
            stored = read_chunk(self._disk, self._directory, chunk)
            if stored is None:
                raise StorageFailed(
                    f"{self._directory}: the list of aborted transactions from {chunk.name_offset} on cannot be read"
                )
            found += _overlapping(stored, self._start_offset, self._end_offset)
        return (*found, *self._recent)


class AbortedTransactions:
    __slots__ = ("_chunks", "_hidden_offset", "_recent", "floor_offset")

    def __init__(self, saved: SavedAborted | None = None) -> None:
        self.floor_offset = saved.floor_offset if saved is not None else 0
        self._chunks = list(saved.chunks) if saved is not None else []
        self._recent = list(saved.recent) if saved is not None else []
        self._hidden_offset = self.floor_offset

    @property
    def is_floor_moving(self) -> bool:
        """Whether readers find less than a start would: nothing that is saved now would be right."""
        return self._hidden_offset > self.floor_offset

    @property
    def recent_count(self) -> int:
        return len(self._recent)

    @property
    def chunk_offsets(self) -> list[int]:
        """The names of the files that are in use."""
        return [chunk.name_offset for chunk in self._chunks]

    def add(self, transaction: AbortedTransaction) -> None:
        """Its marker is the latest."""
        self._recent.append(transaction)

    def look_up(self, disk: Disk, directory: str, *, start_offset: int, end_offset: int) -> AbortedLookup:
        """Those with records at or above `start_offset` and below `end_offset`."""
        start_offset = max(start_offset, self._hidden_offset)
        return AbortedLookup(
            disk,
            directory,
            [chunk for chunk in self._chunks if chunk.overlaps(start_offset, end_offset)],
            tuple(_overlapping(self._recent, start_offset, end_offset)) if self._recent else (),
            start_offset=start_offset,
            end_offset=end_offset,
        )

    def take_chunks(self) -> list[ChunkWrite]:
        """What is to leave memory: write it, then save, then `on_written`."""
        full = len(self._recent) // ABORTED_CHUNK_COUNT * ABORTED_CHUNK_COUNT
        return [
            ChunkWrite(self._recent[at : at + ABORTED_CHUNK_COUNT])
            for at in range(0, full, ABORTED_CHUNK_COUNT)
        ]

    def save(self, written: Sequence[ChunkWrite]) -> SavedAborted:
        """As it will be when those chunks are on disk."""
        count = len(written) * ABORTED_CHUNK_COUNT
        return SavedAborted(
            self.floor_offset, self._chunks + [each.chunk for each in written], self._recent[count:]
        )

    def on_written(self, written: Sequence[ChunkWrite]) -> None:
        for each in written:
            end_offset = each.chunk.last_offset + 1
            if end_offset > self.floor_offset:
                self._chunks.append(each.chunk)
            del self._recent[: _first_from(self._recent, end_offset)]

    def hide_below(self, floor_offset: int) -> None:
        """Readers are given a log in which nothing is left of what ended below; then `forget_below`."""
        self._hidden_offset = max(self._hidden_offset, floor_offset)

    def forget_below(self, floor_offset: int) -> list[int]:
        """Nothing is left for good of what ended below; answers the names of the files that can go."""
        if floor_offset <= self.floor_offset:
            return []
        self.floor_offset = floor_offset
        self._hidden_offset = max(self._hidden_offset, floor_offset)
        del self._recent[: _first_from(self._recent, floor_offset)]
        gone = [chunk.name_offset for chunk in self._chunks if chunk.last_offset < floor_offset]
        if gone:
            self._chunks = [chunk for chunk in self._chunks if chunk.last_offset >= floor_offset]
        return gone

    def is_intact(self, disk: Disk, directory: str) -> bool:
        """Whether the files are as they were written. Blocks."""
        return all(read_chunk(disk, directory, chunk) is not None for chunk in self._chunks)


def read_chunk(disk: Disk, directory: str, chunk: Chunk) -> list[AbortedTransaction] | None:
    """None if the file is missing, damaged or another. Blocks."""
    try:
        data = read_whole(disk, path_of(directory, chunk.name_offset, ABORTED_SUFFIX))
    except OSError:
        return None
    if len(data) < _HEADER.size:
        return None
    magic, guard = _HEADER.unpack_from(data)
    payload = memoryview(data)[_HEADER.size :]
    if magic != _MAGIC or guard != chunk.guard or crc32c(payload) != guard:
        return None
    try:
        return msgspec.msgpack.decode(payload, type=list[AbortedTransaction])
    except msgspec.DecodeError:
        return None


def _overlapping(
    transactions: list[AbortedTransaction], start_offset: int, end_offset: int
) -> list[AbortedTransaction]:
    at = _first_from(transactions, start_offset)
    return [each for each in transactions[at:] if each.first_offset < end_offset]


def _first_from(transactions: list[AbortedTransaction], last_offset: int) -> int:
    return bisect_left(transactions, last_offset, key=_last_offset_of)


def _last_offset_of(transaction: AbortedTransaction) -> int:
    return transaction.last_offset
