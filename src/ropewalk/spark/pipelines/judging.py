"""What is beside the rows of a query's batch: those that cannot be read, set apart in a table of dead letters, and those that came too late, counted.

How
    Before the batch is written, its records are read once more, by the offsets that it has. Dead letters are committed with the next offset of every partition;
    what the table has already is not looked at again. Only then is the batch written: if everything ends in between, checkpoint or output
    bring the same offsets again, and the dead letters are there already. So each row is in the query or in the table of dead letters, as long as the job reads rows in
    the same way; a job that was changed in between may have a row in both, and never in none.

What a reader could get wrong
    By a format, tasks fetch the records themselves and no row goes through Java. `fields` are Spark's to read, here as in the query.
    A batch without such rows does not touch the table.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import structlog
from msgspec import Struct
from pyspark.sql import functions

from ropewalk.spark.checkpoints import batch_watermark_ms
from ropewalk.spark.columns import Column, all_columns
from ropewalk.spark.figures import Figures
from ropewalk.spark.lake.judging import ERROR as LETTER_ERROR
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.landing import Into, stored_of
from ropewalk.spark.lake.shaping import with_times
from ropewalk.spark.lake.table import Commit, LakeTable, TableSpec, WrittenFile
from ropewalk.spark.lake.unseen import refuse_unseen
from ropewalk.spark.lake.writing import FileWriter
from ropewalk.spark.numbers import numbers_in, single
from ropewalk.spark.options import SourceOptions
from ropewalk.spark.pipelines.late_rows import Windows
from ropewalk.spark.pipelines.outputs import Batch
from ropewalk.spark.pipelines.rereading import once_more
from ropewalk.spark.pipelines.row_reading import ERROR, RowReader, RowReading
from ropewalk.spark.ranges import Offsets, Range
from ropewalk.spark.reading import TopicRecords
from ropewalk.spark.sink.marker import Ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_BYTES_TARGET: Final = 128 << 20
_FOUND: Final = "found binary"
_LATE: Final = "ropewalk late"

_log = structlog.get_logger()


class Letters(Struct, frozen=True):
    """The table of dead letters."""

    kind: Kind
    spec: TableSpec


class Judging(Struct, frozen=True, kw_only=True):
    reading: RowReading
    options: SourceOptions
    source: dict[str, str]
    """Options of the source, as the user gave them."""
    letters: Letters | None
    """None where rows that cannot be read stay in the query."""
    windows: Windows | None
    """None where late rows are for Spark to count."""
    checkpoint: str

    def judge(self, spark: "SparkSession", batch: Batch) -> Figures:
        """Of one batch, before it is written."""
        table = None if self.letters is None else open_table(self.letters.kind, self.letters.spec)
        wanted = _new(batch, {} if table is None else stored_of(table, batch.ranges, batch.topic_ids))
        if not wanted:
            return Figures()
        into = None if table is None else Into(table.target, table.schema)
        late = self._late(spark, batch.number)
        look = self._by_tasks if self.reading.has_format else self._by_spark
        frame = look(spark, wanted, into, late)
        found = [msgspec.json.decode(bytes(row[0]), type=Found) for row in frame.collect()]
        files = tuple(each.file for each in found if each.file is not None)
        if table is not None and files:
            _commit(table, batch, files)
        return Figures(
            dead_letters=sum(each.row_count for each in files),
            unreadable_rows=sum(each.unreadable_rows for each in found),
            late_rows=sum(each.late_rows for each in found),
        )

    def _late(self, spark: "SparkSession", number: int) -> "Late | None":
        if self.windows is None or number == 0:
            return None
        watermark_ms = batch_watermark_ms(spark, self.checkpoint, number - 1)
        return Late(self.windows, watermark_ms) if watermark_ms else None

    def _by_tasks(
        self, spark: "SparkSession", wanted: list[Range], into: Into | None, late: "Late | None"
    ) -> "DataFrame":
        records = TopicRecords(self.options)
        pieces = records.split(wanted)
        task = JudgeTask(self.reading, records, pieces, into, late)
        return spark.range(0, len(pieces), 1, len(pieces)).mapInArrow(task, _FOUND)

    def _by_spark(
        self, spark: "SparkSession", wanted: list[Range], into: Into | None, late: "Late | None"
    ) -> "DataFrame":
        bootstrap = ",".join(map(str, self.options.bootstrap))
        ranges: Ranges = {each.partition: (each.start, each.end) for each in wanted}
        ids = {each.partition.topic: each.topic_id for each in wanted if each.topic_id is not None}
        records = once_more(spark, bootstrap, {**self.source, "includeHeaders": "true"}, ranges, ids)
        # Columns that a field takes the place of are wanted here as they came.
        kept = records.select("*", *(functions.col(each.value).alias(_kept(each)) for each in _COLUMNS))
        marked = self.reading.marked(kept)
        is_bad = functions.col(f"`{ERROR}`").isNotNull()
        is_late = functions.lit(False) if late is None else functions.expr(late.condition()) & ~is_bad
        columns = [functions.col(f"`{_kept(each)}`").alias(each.value) for each in _COLUMNS]
        chosen = marked.where(is_bad | is_late).select(
            *columns, functions.col(f"`{ERROR}`").alias(LETTER_ERROR.name), is_late.alias(_LATE)
        )
        return chosen.mapInArrow(SetApartTask(into, ids), _FOUND)


_COLUMNS: Final = all_columns(with_headers=True)


def _kept(column: Column) -> str:
    return f"ropewalk {column.value}"


class Late(Struct, frozen=True):
    windows: Windows
    watermark_ms: int

    def condition(self) -> str:
        return self.windows.condition(self.watermark_ms)

    def count(self, times: pa.Array) -> int:
        known = times.drop_null().cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        return int(self.windows.are_over(numbers_in(known), self.watermark_ms).sum())


class Found(Struct, frozen=True):
    """What a task hands to the driver: its files one by one, and at last what it has counted."""

    file: WrittenFile | None = None
    unreadable_rows: int = 0
    late_rows: int = 0


class JudgeTask(Struct, frozen=True):
    """Reads the piece whose number it is given, and sets apart what cannot be read."""

    reading: RowReading
    records: TopicRecords
    pieces: list[Range]
    into: Into | None
    late: Late | None

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = RowReader(self.reading)
        apart = _Apart(self.into)
        for batch in numbers:
            for number in numbers_in(batch.column(0)):
                piece = self.pieces[number]
                for rows in self.records.read(piece):
                    read = reader.read(rows)
                    error = read.column(ERROR)
                    apart.take(rows.append_column(LETTER_ERROR, error), piece.topic_id)
                    if self.late is not None:
                        good = read.filter(pc.is_null(error))
                        apart.late_rows += self.late.count(good.column(self.reading.event_time))
        return apart.found()


class SetApartTask(Struct, frozen=True):
    """Takes rows that Spark has found to be unreadable or late."""

    into: Into | None
    topic_ids: dict[str, str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        apart = _Apart(self.into)
        for rows in batches:
            apart.late_rows += int(pc.sum(rows.column(_LATE)).as_py() or 0)
            letters = rows.select([name for name in rows.schema.names if name != _LATE])
            for topic in pc.unique(letters.column("topic")).to_pylist():
                of_topic = letters.filter(pc.equal(letters.column("topic"), topic))
                apart.take(of_topic, self.topic_ids.get(topic))
        return apart.found()


class _Apart:
    """What a task has set apart so far."""

    def __init__(self, into: Into | None) -> None:
        self._into = into
        self._writer: FileWriter | None = None
        self._unreadable_rows = 0
        self.late_rows = 0

    def take(self, rows: pa.RecordBatch, topic_id: str | None) -> None:
        """Of rows with a column that says why they cannot be read, those that cannot."""
        bad = rows.filter(pc.is_valid(rows.column(LETTER_ERROR.name)))
        self._unreadable_rows += bad.num_rows
        if self._into is not None and bad.num_rows:
            if self._writer is None:
                self._writer = FileWriter(
                    self._into.target, self._into.schema, file_bytes_target=FILE_BYTES_TARGET
                )
            self._writer.write(with_times(bad, self._into.schema, topic_id))

    def found(self) -> Iterator[pa.RecordBatch]:
        files = [] if self._writer is None else self._writer.finish()
        counted = Found(unreadable_rows=self._unreadable_rows, late_rows=self.late_rows)
        for each in (*(Found(file) for file in files), counted):
            yield pa.record_batch({"found": single(msgspec.json.encode(each))})


def _new(batch: Batch, stored: Offsets) -> list[Range]:
    """What the table of dead letters has not seen yet."""
    found = (
        Range(each, max(start, stored.get(each, start)), end, batch.topic_ids.get(each.topic))
        for each, (start, end) in sorted(batch.ranges.items())
    )
    return [each for each in found if each.count]


def _commit(table: LakeTable, batch: Batch, files: tuple[WrittenFile, ...]) -> None:
    refuse_unseen(table.target, files)
    row_count = sum(each.row_count for each in files)
    figures = Figures(
        written_rows=row_count,
        written_bytes=sum(each.size_bytes for each in files),
        written_files=len(files),
        dead_letters=row_count,
    )
    ends = {each: end for each, (start, end) in batch.ranges.items() if end > max(start, 0)}
    note = {"batch": str(batch.number), "query": batch.query}
    table.commit(Commit(files, ends, note, batch.topic_ids, figures.noted()))
    _log.warning("rows could not be read", rows=row_count, table=table.target.root)
