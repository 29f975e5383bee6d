"""One batch of a query lands in a table: looked up, read and written by tasks, committed by the driver.

What a reader could get wrong
    Of the query only the bounds of its batches are used, which Spark keeps in the checkpoint. Its rows are never asked for: tasks read
    the records themselves and write them, so that no row goes through Java, which would cost several times as much as all the rest
    (ADR 0012).
    Through Spark Connect this runs in a process of the server's, not in the one that started the query: everything it needs is in
    its fields, and the session is the one of the frame.
    Spark calls it again for the same batch after a crash, whether or not the table had got it. What the table has stored decides.
    Rows whose values cannot be read go to a table of their own, by the rules of `dead_letters.py`.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
import pyarrow as pa
import structlog
from msgspec import Struct

from ropewalk.spark import fail_points
from ropewalk.spark.checkpoints import batch_ranges
from ropewalk.spark.lake.advance import decide_advance
from ropewalk.spark.lake.dead_letters import note_of, settle
from ropewalk.spark.lake.judging import judge, value_schema
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.places import Place, local_directory
from ropewalk.spark.lake.shaping import with_times
from ropewalk.spark.lake.table import Commit, LakeTable, TableSpec, Target, Upkeep, WrittenFile
from ropewalk.spark.lake.writing import FileWriter
from ropewalk.spark.numbers import numbers_in, single
from ropewalk.spark.ranges import Json, Range
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.decoding import ResolvedFormat, ValueFormat, newest, open_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES: Final = "file binary"
"""What tasks hand back to the driver: a row for each file they wrote."""

_log = structlog.get_logger()


class Records(Protocol):
    """Where a batch's records come from. It is sent to tasks."""

    def split(self, ranges: list[Range]) -> list[Range]:
        """One for each task; together they are all of it."""

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        """With all columns that a topic has. Called in tasks."""


class Landing(Struct, frozen=True, kw_only=True):
    records: Records
    kind: Kind
    spec: TableSpec
    letters: TableSpec | None = None
    """The table of what cannot be read; None where values are taken as they are."""
    values: ResolvedFormat = ResolvedFormat(ValueFormat())
    topics: tuple[str, ...] = ()
    """Those that are known by name."""
    checkpoint: str
    starting: Json
    """Where the query's first batch begins: where the table ended when the query was started."""
    upkeep: Upkeep
    upkeep_batches: int
    """So many batches from one upkeep to the next; 0 for never."""

    def __call__(self, frame: "DataFrame", batch_id: int) -> None:
        self.settle()
        ranges = batch_ranges(frame.sparkSession, self.checkpoint, batch_id, self.starting)
        table = open_table(self.kind, self.spec)
        values = newest(self.values, self.topics)
        # Before the look at the offsets: a change of columns takes in what others have committed, so that Delta would not tell of it later.
        table.widen(value_schema(self.spec.schema, open_reader(values).schema()))
        advance = decide_advance(table.next_offsets(each.partition for each in ranges), ranges)
        if not advance.next_offsets:
            return
        written = Written((), ())
        if advance.ranges:
            written = self._write(frame.sparkSession, table, values, advance.ranges)
        fail_points.reach("archive files written")
        note = {"batch": str(batch_id), **note_of(written.letters, advance.next_offsets)}
        table.commit(Commit(written.files, advance.next_offsets, note))
        fail_points.reach("archive committed")
        if written.letters:
            self.settle()
        if self.upkeep_batches and (batch_id + 1) % self.upkeep_batches == 0:
            self.maintain()

    def settle(self) -> None:
        """Nothing is left to do for the table of dead letters when this is over. Before any commit of the table."""
        if self.letters is not None:
            count = settle(open_table(self.kind, self.spec), open_table(self.kind, self.letters))
            if count:
                _log.warning("values could not be read", rows=count, table=self.letters.address)

    def maintain(self) -> None:
        for spec in (self.spec, self.letters):
            if spec is not None:
                said = open_table(self.kind, spec).maintain(self.upkeep)
                _log.info("table maintained", table=spec.address, what=said)

    def _write(
        self, spark: "SparkSession", table: LakeTable, values: ResolvedFormat, ranges: list[Range]
    ) -> "Written":
        letters = None if self.letters is None else open_table(self.kind, self.letters)
        pieces = self.records.split(ranges)
        task = WriteTask(
            records=self.records,
            pieces=pieces,
            into=Into(table.target, table.schema),
            letters=None if letters is None else Into(letters.target, letters.schema),
            values=values,
            file_bytes_target=self.upkeep.file_bytes_target,
        )
        found = [
            msgspec.json.decode(bytes(row[0]), type=Handed)
            for row in spark.range(0, len(pieces), 1, len(pieces)).mapInArrow(task, _FILES).collect()
        ]
        written = Written(
            tuple(each.file for each in found if not each.is_letters),
            tuple(each.file for each in found if each.is_letters),
        )
        refuse_unseen(table.target, written.files)
        if letters is not None:
            refuse_unseen(letters.target, written.letters)
        return written


class Written(NamedTuple):
    """The files of one batch."""

    files: tuple[WrittenFile, ...]
    letters: tuple[WrittenFile, ...]
    """Those of rows that cannot be read."""


class Handed(Struct, frozen=True):
    """What a task hands to the driver for each of its files."""

    file: WrittenFile
    is_letters: bool


class Into(Struct, frozen=True):
    """One table, as far as a task has to know it."""

    target: Target
    schema: pa.Schema


class WriteTask(Struct, frozen=True, kw_only=True):
    """What one task does with the piece whose number it is given."""

    records: Records
    pieces: list[Range]
    into: Into
    letters: Into | None
    values: ResolvedFormat
    file_bytes_target: int

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = open_reader(self.values)
        writer, letters = self._writer(self.into), None
        for rows in self._rows(numbers):
            if self.letters is None:
                writer.write(with_times(rows, self.into.schema))
                continue
            judged = judge(rows, reader)
            writer.write(with_times(judged.good, self.into.schema))
            if judged.bad.num_rows:
                letters = letters or self._writer(self.letters)
                letters.write(with_times(judged.bad, self.letters.schema))
        files, bad = writer.finish(), [] if letters is None else letters.finish()
        fail_points.reach("archive task written")
        yield from _handed(files, is_letters=False)
        yield from _handed(bad, is_letters=True)

    def _rows(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in numbers_in(batch.column(0)):
                yield from self.records.read(self.pieces[number])

    def _writer(self, into: Into) -> FileWriter:
        return FileWriter(into.target, into.schema, file_bytes_target=self.file_bytes_target)


def _handed(files: Iterable[WrittenFile], *, is_letters: bool) -> Iterator[pa.RecordBatch]:
    for file in files:
        handed = msgspec.json.encode(Handed(file, is_letters))
        yield pa.record_batch({"file": single(handed)})


def refuse_unseen(target: Target, files: tuple[WrittenFile, ...]) -> None:
    """Tasks on other machines write to a directory of the same name there; a commit would then name files that nobody finds."""
    if local_directory(target.root) is None:
        return
    place = Place(target.root)
    for file in files:
        if not place.has(file.path, file.size_bytes):
            raise WrongUse(
                f"{file.path}, which a task wrote below {target.root}, is not there for the driver: nothing was committed."
                " With several machines the table must be on a file system that all of them share, or in an object store"
            )
