"""The sparse index of a segment: for about every 4 KiB of log, one batch and where it begins.

One file per segment serves look-ups by offset and by time. It is a row of chunks, appended when there is
enough to write:

    count u32 | segment's base offset i64 | CRC32C u32 | relative offsets u32… | positions u32… | timestamps i64…

A timestamp is the largest of the segment up to and including its batch, so the column never falls.
Numbers in columns are little-endian.

What a reader could get wrong
    An index is a hint. It is written without a sync, so any part of it may be missing after a crash; what is
    missing, fails its CRC or names another segment is built again by scanning the log. Whoever uses an entry
    that came from a file checks that the log holds a batch of that offset at that position.
    Entries are kept in two places: chunks already in the file, loaded on demand through `IndexCache`, and the
    pending ones in memory. An idle partition holds next to nothing.
"""

import sys
from array import array
from bisect import bisect_right
from collections import OrderedDict
from struct import Struct as Layout
from typing import Final

from crc32c import crc32c
from typing_extensions import Buffer

from ropewalk.base.ports import File
from ropewalk.log.scan import VERIFY_NONE, Damage, scan

CHUNK_ENTRIES: Final = 512
RELATIVE_OFFSET_MAX: Final = 2**32 - 1

_HEADER: Final = Layout("<IqI")
_GUARDED: Final = Layout("<Iq")
_ENTRY_BYTES: Final = 16


class Columns:
    """Entries by column; offsets are relative to the segment's base offset."""

    __slots__ = ("offsets", "positions", "timestamps")

    def __init__(self) -> None:
        self.offsets = array("I")
        self.positions = array("I")
        self.timestamps = array("q")

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def size_bytes(self) -> int:
        return len(self.offsets) * _ENTRY_BYTES

    def add(self, relative_offset: int, position: int, timestamp: int) -> None:
        # A thread of the disk pool may read meanwhile. The offsets grow last: whatever `len` counts is whole.
        self.timestamps.append(timestamp)
        self.positions.append(position)
        self.offsets.append(relative_offset)

    def extend(self, other: "Columns") -> None:
        self.timestamps.extend(other.timestamps)
        self.positions.extend(other.positions)
        self.offsets.extend(other.offsets)

    def floor(self, relative_offset: int) -> int:
        """The entry of the last batch at or before an offset; -1 if the offset is before all of them."""
        return bisect_right(self.offsets, relative_offset) - 1

    def keep_below(self, position: int) -> None:
        """Drop the entries from a position of the log on."""
        count = bisect_right(self.positions, position - 1) if position > 0 else 0
        del self.offsets[count:], self.positions[count:], self.timestamps[count:]


def encode_chunk(columns: Columns, base_offset: int) -> bytes:
    payload = b"".join(_to_little_endian(column) for column in _arrays(columns))
    guard = crc32c(payload, crc32c(_GUARDED.pack(len(columns), base_offset)))
    return _HEADER.pack(len(columns), base_offset, guard) + payload


def decode_chunks(data: Buffer, base_offset: int) -> tuple[Columns, int]:
    """The entries of the leading valid chunks, and how many bytes these chunks take up."""
    columns = Columns()
    view = memoryview(data)
    position = 0
    while position + _HEADER.size <= len(view):
        count, chunk_base_offset, guard = _HEADER.unpack_from(view, position)
        start = position + _HEADER.size
        end = start + count * _ENTRY_BYTES
        if count == 0 or end > len(view) or chunk_base_offset != base_offset:
            break
        payload = view[start:end]
        if crc32c(payload, crc32c(_GUARDED.pack(count, base_offset))) != guard:
            break
        chunk = Columns()
        for column, width in zip(_arrays(chunk), (4, 4, 8), strict=True):
            column.frombytes(payload[: count * width])
            payload = payload[count * width :]
            if sys.byteorder == "big":
                column.byteswap()
        if len(columns) and (
            chunk.offsets[0] <= columns.offsets[-1] or chunk.positions[0] <= columns.positions[-1]
        ):
            break
        columns.extend(chunk)
        position = end
    return columns, position


class SegmentIndex:
    """The index of one segment: what is in its file, and what is not yet."""

    __slots__ = ("base_offset", "entry_position_min", "flushed_bytes", "path", "pending")

    def __init__(self, path: str, base_offset: int, *, flushed_bytes: int, entry_position_min: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self.flushed_bytes = flushed_bytes
        """How much of the file may hold good chunks; 0 where it is known to be missing or wrong."""

        self.entry_position_min = entry_position_min
        """The next entry is for the first batch that begins here or later."""

        self.pending = Columns()

    def flush(self, file: File, cache: "IndexCache") -> None:
        """Move the pending entries into the file, as far as the page cache.

        A chunk that is not taken whole is cut off again, or, if that fails too, found wrong by its CRC.
        """
        chunk = encode_chunk(self.pending, self.base_offset)
        try:
            if file.append(chunk) != len(chunk):
                file.truncate(self.flushed_bytes)
                return
        except OSError:
            return
        self.flushed_bytes += len(chunk)
        cache.extend(self.path, self.pending)
        self.pending = Columns()


class IndexRequest:
    """What is needed to load one segment's index in the disk pool, noted on the event loop."""

    __slots__ = ("base_offset", "end_offset", "end_position", "flushed_bytes", "interval_bytes")

    def __init__(
        self, *, base_offset: int, end_offset: int, flushed_bytes: int, end_position: int, interval_bytes: int
    ) -> None:
        self.base_offset = base_offset
        self.end_offset = end_offset
        self.flushed_bytes = flushed_bytes
        self.end_position = end_position
        """Where the pending entries begin, or the segment ends: the loaded ones reach up to there."""

        self.interval_bytes = interval_bytes

    def load(self, index_file: File | None, log_file: File) -> tuple[Columns, bool]:
        """The entries, completed from the log where the file lacks them, and whether it lacked any."""
        data = b"" if index_file is None else index_file.read(0, self.flushed_bytes)
        columns, _ = decode_chunks(data, self.base_offset)
        columns.keep_below(self.end_position)
        count = len(columns)
        return self._complete(columns, log_file), len(columns) > count

    def rebuild(self, log_file: File) -> Columns:
        """The entries, from the log alone."""
        return self._complete(Columns(), log_file)

    def _complete(self, columns: Columns, log_file: File) -> Columns:
        position, offset, timestamp = 0, self.base_offset, -1
        if len(columns):
            position = columns.positions[-1]
            offset = self.base_offset + columns.offsets[-1]
            timestamp = columns.timestamps[-1]
        entry_position_min = position + self.interval_bytes if len(columns) else 0
        for piece in scan(
            log_file,
            position=position,
            end_position=self.end_position,
            offset=offset,
            end_offset=self.end_offset,
            verify_from=VERIFY_NONE,
        ):
            if isinstance(piece, Damage):
                continue
            header = piece.header
            timestamp = max(timestamp, header.max_timestamp)
            if piece.position >= entry_position_min:
                columns.add(header.base_offset - self.base_offset, piece.position, timestamp)
                entry_position_min = piece.position + self.interval_bytes
        return columns


class IndexCache:
    """Loaded indexes of all logs of a node, up to a number of bytes, least recently used ones dropped first."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._loaded: OrderedDict[str, Columns] = OrderedDict()

    def get(self, path: str) -> Columns | None:
        columns = self._loaded.get(path)
        if columns is not None:
            self._loaded.move_to_end(path)
        return columns

    def peek(self, path: str) -> Columns | None:
        """As `get`, safe in any thread."""
        return self._loaded.get(path)

    def put(self, path: str, columns: Columns) -> None:
        self.drop(path)
        self._loaded[path] = columns
        self._bytes += columns.size_bytes
        self._evict()

    def extend(self, path: str, more: Columns) -> None:
        """Entries were added to the file of an index; a loaded one stays complete."""
        columns = self._loaded.get(path)
        if columns is not None:
            columns.extend(more)
            self._bytes += more.size_bytes
            self._evict()

    def drop(self, path: str) -> None:
        columns = self._loaded.pop(path, None)
        if columns is not None:
            self._bytes -= columns.size_bytes

    def _evict(self) -> None:
        while self._bytes > self._bytes_max and self._loaded:
            _, columns = self._loaded.popitem(last=False)
            self._bytes -= columns.size_bytes


def _arrays(columns: Columns) -> "tuple[array[int], array[int], array[int]]":
    return columns.offsets, columns.positions, columns.timestamps


def _to_little_endian(column: "array[int]") -> bytes:
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()
