"""Small files of a table become larger ones: rows are read and written by tasks, row group after row group.

What a reader could get wrong
    Rows are taken by the names of columns, so a file must mean the same by a name as the table does. Where its columns have field numbers they are
    compared; a file with a column that the table does not have, or has under another number, is left as it is, and with it what it was to
    be joined with.
    Columns that the table is partitioned by may be missing in files; a directory has one value of each.
    A task that fails, or is run twice, leaves files that no commit names.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from ropewalk.spark.lake.conforming import conform
from ropewalk.spark.lake.places import Place
from ropewalk.spark.lake.table import Target, WrittenFile
from ropewalk.spark.lake.upkeep import Join
from ropewalk.spark.lake.writing import FileWriter
from ropewalk.spark.numbers import numbers_in, single

ROWS_AT_ONCE: Final = 64 << 10
"""Read of a file at a time: little enough for rows of some kilobytes in the memory of a task that writes."""

FIELD_ID: Final = b"PARQUET:field_id"


class Joined(Struct, frozen=True):
    """What a task says of one `Join`."""

    number: int
    files: tuple[WrittenFile, ...] = ()
    fault: str | None = None
    """Why its files stay as they are."""


class JoinTask(Struct, frozen=True, kw_only=True):
    """What one task does with the join whose number it is given."""

    target: Target
    schema: pa.Schema
    joins: tuple[Join, ...]
    file_bytes_target: int

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in numbers_in(batch.column(0)):
                said = msgspec.json.encode(self.join(int(number)))
                yield pa.record_batch({"joined": single(said)})

    def join(self, number: int) -> Joined:
        place = Place(self.target.root, self.target.storage)
        # Twice as much: what fits one file is to become one, though it may be compressed less well than it was.
        writer = FileWriter(self.target, self.schema, file_bytes_target=2 * self.file_bytes_target)
        try:
            for rows in self._rows(place, self.joins[number]):
                writer.write(rows)
        except (_Unlike, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            for file in writer.finish():
                place.delete(file.path)
            return Joined(number, fault=str(error))
        return Joined(number, tuple(writer.finish()))

    def _rows(self, place: Place, join: Join) -> Iterator[pa.RecordBatch]:
        for file in join.files:
            with place.open(file.path) as stream, pq.ParquetFile(stream) as opened:
                fault = unlike(opened.schema_arrow, self.schema)
                if fault is not None:
                    raise _Unlike(f"{fault}, in {file.path}")
                for rows in opened.iter_batches(batch_size=ROWS_AT_ONCE):
                    yield self._as_table_rows(rows, dict(join.values))

    def _as_table_rows(self, rows: pa.RecordBatch, values: dict[str, str | None]) -> pa.RecordBatch:
        columns = [
            conform(rows.column(field.name), field.type)
            if field.name in rows.schema.names
            else pa.repeat(values.get(field.name), rows.num_rows).cast(field.type)
            if values.get(field.name) is not None
            else pa.nulls(rows.num_rows, field.type)
            for field in self.schema
        ]
        return pa.record_batch(columns, schema=self.schema.remove_metadata())


Joiner: TypeAlias = Callable[[JoinTask], list[Joined]]
"""Has all joins of a task made, somewhere."""


def here(task: JoinTask) -> list[Joined]:
    """In this process, one after the other."""
    return [task.join(number) for number in range(len(task.joins))]


def unlike(file: pa.Schema, table: pa.Schema) -> str | None:
    """Which column of a file is not what the table has under that name; None if there is no such column."""
    return _unlike(list(file), list(table), "")


class _Unlike(Exception):
    """A file whose columns are not the table's."""


def _unlike(file: Sequence[pa.Field], table: Sequence[pa.Field], above: str) -> str | None:
    known = {field.name: field for field in table}
    for field in file:
        path, same = above + field.name, known.get(field.name)
        if same is None:
            return f"the table has no column {path!r}"
        ids = [(each.metadata or {}).get(FIELD_ID) for each in (field, same)]
        if None not in ids and ids[0] != ids[1]:
            return f"column {path!r} is another one by now"
        if pa.types.is_struct(field.type) and pa.types.is_struct(same.type):
            fault = _unlike(list(field.type), list(same.type), f"{path}.")
            if fault is not None:
                return fault
    return None
