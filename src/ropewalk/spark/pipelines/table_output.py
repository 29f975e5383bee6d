"""A transform's rows to a table of the lake: files written by tasks, one commit by the driver for each batch."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.figures import NOTHING, Figures
from ropewalk.spark.lake.keeping import Keeper
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.landing import stored_of
from ropewalk.spark.lake.table import Commit, TableSpec, Target, WrittenFile
from ropewalk.spark.lake.unseen import refuse_unseen
from ropewalk.spark.lake.writing import FileWriter, write_all
from ropewalk.spark.numbers import single
from ropewalk.spark.options import OnNewTopic
from ropewalk.spark.pipelines.outputs import Batch
from ropewalk.spark.pipelines.table_progress import counter, is_new, moved
from ropewalk.spark.ranges import TopicIds, made_anew
from ropewalk.spark.refusals import DataLost, WrongUse, said_of_made_anew
from ropewalk.spark.sink.recovery import Resumption

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILES: Final = "file binary"
_IN_DIRECTORIES: Final = (pa.types.is_string, pa.types.is_integer, pa.types.is_date, pa.types.is_boolean)


class TableOutput(Struct, frozen=True):
    kind: Kind
    spec: TableSpec
    file_bytes_target: int = 128 << 20
    keeper: Keeper | None = None
    """Keeps the table up beside the batches."""

    @property
    def title(self) -> str:
        return f"{self.kind} table {self.spec.address}"

    @property
    def topic(self) -> str | None:
        return None

    def resumption(
        self, partitions: Sequence[TopicPartition], topic_ids: TopicIds, *, on_new_topic: OnNewTopic
    ) -> Resumption | None:
        """A table is never half written."""
        table = open_table(self.kind, self.spec)
        known = table.topic_ids(topic_ids)
        names = made_anew(known, topic_ids)
        if names and on_new_topic == "refuse":
            raise DataLost(said_of_made_anew(names[0], known[names[0]], topic_ids[names[0]]))
        left_out = {name: known[name] for name in names if on_new_topic == "leave_out"}
        stored = stored_of(table, partitions, {**topic_ids, **left_out})
        return Resumption(None, stored, left_out) if stored else None

    def take_over(self) -> None:
        """Queries are told apart by their own counts, and the same offsets are never committed twice."""

    def write(self, rows: "DataFrame", batch: Batch, beside: Figures = NOTHING) -> Figures | None:
        table = open_table(self.kind, self.spec)
        table.widen(self.spec.schema)  # a query that was changed may give more columns
        stored = stored_of(table, [*batch.ranges, counter(batch.query)], batch.topic_ids)
        if not is_new(stored, batch.query, batch.number, batch.ranges):
            return None
        task = WriteTask(table.target, table.schema, self.file_bytes_target)
        files = tuple(
            msgspec.json.decode(bytes(row[0]), type=WrittenFile)
            for row in rows.mapInArrow(task, _FILES).collect()
        )
        refuse_unseen(table.target, files)
        note = {"batch": str(batch.number), "query": batch.query}
        figures = Figures(
            written_rows=sum(each.row_count for each in files),
            written_bytes=sum(each.size_bytes for each in files),
            written_files=len(files),
        )
        moves = moved(batch.query, batch.number, batch.ranges)
        table.commit(Commit(files, moves, note, batch.topic_ids, (figures + beside).noted()))
        if self.keeper is not None:
            self.keeper.after_batch(rows.sparkSession, files)
        return figures


def refuse_partition_columns(names: Sequence[str], schema: pa.Schema) -> None:
    """A directory is named for a value, so values must have one text that every reader takes for the same."""
    for name in names:
        if name not in schema.names:
            raise WrongUse(f"partition_by names {name}, and the SQL gives {', '.join(schema.names)}")
        kind = schema.field(name).type
        if not any(fits(kind) for fits in _IN_DIRECTORIES):
            raise WrongUse(
                f"partition_by names {name}, which is {kind}: directories are made for text, whole numbers, dates and truths; cast it in the SQL"
            )
    if len(set(names)) < len(names):
        raise WrongUse("partition_by names a column twice")
    if names and len(names) == len(schema.names):
        raise WrongUse("partition_by names every column that the SQL gives; leave one for the files")


class WriteTask(Struct, frozen=True):
    """What one task does with its rows."""

    target: Target
    schema: pa.Schema
    file_bytes_target: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = FileWriter(self.target, self.schema, file_bytes_target=self.file_bytes_target)
        for file in write_all(
            writer, (as_table_rows(rows, self.schema) for rows in batches if rows.num_rows)
        ):
            yield pa.record_batch({"file": single(msgspec.json.encode(file))})


def as_table_rows(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """In the table's order and types; a column that the query does not give any more is empty."""
    given = set(rows.schema.names)
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in given
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.record_batch(columns, schema=schema.remove_metadata())
