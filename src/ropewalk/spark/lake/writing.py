"""One task: rows → Parquet files, in bounded memory. Runs on executors.

What a reader could get wrong
    Every attempt of every task writes files of its own, with names that nobody uses again. What a failed attempt leaves behind
    is never named by a commit.
    Rows are held until there are enough for a row group worth its name, over all open files together no more than
    `MEMORY_BYTES`: then the file that holds most writes a row group.
    A directory that got no rows for long is closed when another one needs its place, so one task may leave several files in it.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ropewalk.spark.columns import Column
from ropewalk.spark.lake.places import Place
from ropewalk.spark.lake.shaping import DATE_MAX, DATE_MIN, DAY_US, by_values
from ropewalk.spark.lake.table import Target, WrittenFile

MEMORY_BYTES: Final = 64 << 20
"""Of rows that wait for their row group in one task: as much as a group that readers like."""

OPEN_FILES_MAX: Final = 64
"""One for each directory that rows fall into: two months by date, some days by hour. Each costs a buffer of its own."""

NULL_DIRECTORY: Final = "__HIVE_DEFAULT_PARTITION__"
"""How Hive and all after it spell a directory of rows whose value is null."""

_AS_THEY_ARE: Final = ""
"""Beside letters, digits and `_.-~`, the characters of a value that are in the name of a directory as they are; others are written as Hive does, like `%2F`."""

_WITHOUT_DICTIONARY: Final = frozenset({"key", "value", "offset", "timestamp"})
"""Columns whose values rarely repeat: looking for repetitions costs and saves nothing."""

_WITHOUT_STATISTICS: Final = frozenset({"key", "value"})


class FileWriter:
    def __init__(
        self, target: Target, schema: pa.Schema, *, file_bytes_target: int, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._target = target
        self._place = Place(target.root, target.storage)
        self._file_bytes_target = file_bytes_target
        self._memory_bytes = memory_bytes
        stays = [
            field
            for field in schema
            if target.keeps_partition_columns or field.name not in target.partition_columns
        ]
        self._schema = pa.schema(stays)
        self._open: dict[tuple[str | None, ...], _OpenFile] = {}
        """The one that was written to last stands last."""
        self._written: list[WrittenFile] = []
        self._waiting_bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        """`rows` have the columns of the table, in its order."""
        for values, piece in by_values(rows, self._target.partition_columns):
            opened = self._open.pop(values, None) or _OpenFile(self._place, self._path(values), self._schema)
            self._open[values] = opened
            self._waiting_bytes += opened.hold(piece)
            while self._waiting_bytes > self._memory_bytes:
                largest = max(self._open.values(), key=lambda each: each.waiting_bytes)
                self._waiting_bytes -= largest.flush()
            if opened.size_bytes >= self._file_bytes_target:
                self._close(values)
            if len(self._open) > OPEN_FILES_MAX:
                self._close(next(iter(self._open)))

    def finish(self) -> list[WrittenFile]:
        for values in list(self._open):
            self._close(values)
        return self._written

    def _close(self, values: tuple[str | None, ...]) -> None:
        opened = self._open.pop(values)
        self._waiting_bytes -= opened.waiting_bytes
        self._written.append(opened.close(dict(zip(self._target.partition_columns, values, strict=True))))

    def _path(self, values: tuple[str | None, ...]) -> str:
        directories = [
            f"{name}={NULL_DIRECTORY if value is None else quote(value, safe=_AS_THEY_ARE)}"
            for name, value in zip(self._target.partition_columns, values, strict=True)
        ]
        return "/".join([*directories, f"part-{uuid4()}.parquet"])


def write_all(writer: FileWriter, batches: Iterable[pa.RecordBatch]) -> Iterator[WrittenFile]:
    for rows in batches:
        writer.write(rows)
    yield from writer.finish()


class _OpenFile:
    def __init__(self, place: Place, path: str, schema: pa.Schema) -> None:
        self._place = place
        self._path = path
        self._schema = schema
        self._stream = place.create(path)
        self._writer = pq.ParquetWriter(
            self._stream,
            schema,
            compression="zstd",
            use_dictionary=_paths(schema, without=_WITHOUT_DICTIONARY),
            write_statistics=_paths(schema, without=_WITHOUT_STATISTICS),
        )
        self._waiting: list[pa.RecordBatch] = []
        self.waiting_bytes = 0
        self._row_count = 0
        self._offsets = _Bounds()
        self._timestamps = _Bounds()
        self._partitions = _Bounds()

    @property
    def size_bytes(self) -> int:
        """Of what is written; what waits is not compressed yet."""
        return int(self._stream.tell())

    def hold(self, rows: pa.RecordBatch) -> int:
        """How many bytes more wait now."""
        self._offsets.see(_as_a_topic_has_it(rows, Column.OFFSET))
        self._timestamps.see(_as_a_topic_has_it(rows, Column.TIMESTAMP))
        self._partitions.see(_as_a_topic_has_it(rows, Column.PARTITION))
        self._row_count += rows.num_rows
        kept = rows.select(self._schema.names)
        self._waiting.append(kept)
        self.waiting_bytes += kept.nbytes
        return int(kept.nbytes)

    def flush(self) -> int:
        """How many bytes wait no longer."""
        flushed = self.waiting_bytes
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema)
            self._waiting.clear()
            self._writer.write_table(table, row_group_size=table.num_rows)
            self.waiting_bytes = 0
        return flushed

    def close(self, partition_values: dict[str, str | None]) -> WrittenFile:
        self.flush()
        self._writer.close()
        self._stream.close()
        earliest, latest = self._timestamps.first, self._timestamps.last
        dated = self._timestamps.are_known and DATE_MIN <= earliest // DAY_US <= latest // DAY_US <= DATE_MAX
        numbered = self._offsets.are_known
        return WrittenFile(
            path=self._path,
            size_bytes=self._place.seal(self._path),
            row_count=self._row_count,
            partition_values=partition_values,
            modified_at_ms=int(time.time() * 1000),
            offset_min=self._offsets.first if numbered else None,
            offset_max=self._offsets.last if numbered else None,
            timestamp_min_ms=earliest // 1000 if dated else None,
            timestamp_max_ms=-(-latest // 1000) if dated else None,
            partition_min=self._partitions.first if self._partitions.are_known else None,
            partition_max=self._partitions.last if self._partitions.are_known else None,
        )


def _paths(schema: pa.Schema, *, without: frozenset[str]) -> list[str]:
    """Of columns as Parquet has them, which are those inside columns where there are any. A value that was read is not meant by its name."""
    return [
        path
        for field in schema
        if field.name not in without or pa.types.is_nested(field.type)
        for path in _leaves(field.name, field.type)
    ]


def _leaves(path: str, type_: pa.DataType) -> list[str]:
    if pa.types.is_struct(type_):
        return [leaf for field in type_ for leaf in _leaves(f"{path}.{field.name}", field.type)]
    if pa.types.is_list(type_):
        return _leaves(f"{path}.list.element", type_.value_type)
    if pa.types.is_map(type_):
        keys = _leaves(f"{path}.key_value.key", type_.key_type)
        return keys + _leaves(f"{path}.key_value.value", type_.item_type)
    return [path]


def _as_a_topic_has_it(rows: pa.RecordBatch, column: Column) -> pa.Array | None:
    """As numbers. None where a query has made something else under that name, or there is no such column."""
    at = rows.schema.get_field_index(column.value)
    if at < 0 or rows.schema.field(at).type != column.arrow_type:
        return None
    return rows.column(at).cast(pa.int64())


class _Bounds:
    """Least and greatest of all that was seen, where every row had a number."""

    __slots__ = ("_are_whole", "first", "last")

    def __init__(self) -> None:
        self.first = 1 << 63
        self.last = -(1 << 63)
        self._are_whole = True

    @property
    def are_known(self) -> bool:
        return self._are_whole and self.first <= self.last

    def see(self, numbers: pa.Array | None) -> None:
        """Of rows that have none, or not all of them, nothing can be said to who leaves out files by bounds."""
        if numbers is None or numbers.null_count:
            self._are_whole = False
            return
        bounds = pc.min_max(numbers)
        if not bounds["min"].is_valid:
            return
        self.first = min(self.first, bounds["min"].as_py())
        self.last = max(self.last, bounds["max"].as_py())
