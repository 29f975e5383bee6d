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
from msgspec import Struct, field

from ropewalk.base.ids import TopicPartition
from ropewalk.spark import fail_points
from ropewalk.spark.checkpoints import batch_ranges
from ropewalk.spark.figures import Figures, Tally
from ropewalk.spark.job_names import name_jobs
from ropewalk.spark.lake.advance import decide_advance
from ropewalk.spark.lake.choosing import Choice, Choosing, for_letters
from ropewalk.spark.lake.dead_letters import note_of, settle
from ropewalk.spark.lake.judging import judge, value_schema
from ropewalk.spark.lake.keeping import Keeper
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.put_back import said_of_put_back
from ropewalk.spark.lake.shaping import with_times
from ropewalk.spark.lake.table import Commit, LakeTable, TableSpec, Target, WrittenFile
from ropewalk.spark.lake.unseen import refuse_unseen
from ropewalk.spark.lake.writing import FileWriter
from ropewalk.spark.numbers import numbers_in, single
from ropewalk.spark.options import OnNewTopic
from ropewalk.spark.ranges import Json, Offsets, Progress, Range, TopicIds, made_anew
from ropewalk.spark.refusals import DataLost
from ropewalk.spark.values.decoding import ResolvedFormat, ValueFormat, newest, open_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES: Final = "file binary"
"""What tasks hand back to the driver: a row for each file they wrote."""

_log = structlog.get_logger()


def said_of_archive(address: str, topic: str, archived_id: str, found_id: str) -> str:
    return (
        f"topic {topic} was deleted and made anew: the table in {address} has records of the one with the id {archived_id}, and the one that"
        f" is there has {found_id}. Say on_new_topic=append to add its records from its start on, each with its topic_id, or archive it"
        " to another table"
    )


def stored_of(table: LakeTable, partitions: Iterable[TopicPartition], topic_ids: TopicIds) -> Offsets:
    """Where the table stands in these topics, and not in others that had their names before. Raises `DataLost` if its rows were put back."""
    asked = list(partitions)
    known, kept = table.topic_ids(topic_ids), table.next_offsets(asked)
    put_back = table.put_back(asked)
    if put_back is not None:
        raise DataLost(said_of_put_back(put_back, kept))
    return Progress(kept, known).without(made_anew(known, topic_ids)).offsets


def _topic_ids(ranges: Iterable[Range]) -> TopicIds:
    return {each.partition.topic: each.topic_id for each in ranges if each.topic_id is not None}


class Records(Protocol):
    """Where a batch's records come from. It is sent to tasks."""

    def split(self, ranges: list[Range]) -> list[Range]:
        """One for each task; together they are all of it."""

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Of those that are there by now."""

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
    file_bytes_target: int = 128 << 20
    keeper: Keeper | None = None
    """Keeps both tables up beside the batches."""
    on_new_topic: OnNewTopic = "refuse"
    choice: Choice = Choice()
    topic_schema: pa.Schema | None = None
    """The columns of topics with those that the table adds, before any was chosen; as the table has them if None."""
    tally: Tally = field(default_factory=Tally)

    def __call__(self, frame: "DataFrame", batch_id: int) -> None:
        self.settle()
        ranges = batch_ranges(frame.sparkSession, self.checkpoint, batch_id, self.starting)
        bounds = {each.partition: (each.start, each.end) for each in ranges}
        name_jobs(frame.sparkSession, self.spec.owner, batch_id, bounds)
        table = open_table(self.kind, self.spec)
        values = newest(self.values, self.topics)
        # Before the look at the offsets: a change of columns takes in what others have committed, so that Delta would not tell of it later.
        whole = value_schema(self.topic_schema or self.spec.schema, open_reader(values).schema())
        table.widen(self.choice.schema(whole))
        ranges = self._admitted(table, ranges)
        topic_ids = _topic_ids(ranges)
        advance = decide_advance(stored_of(table, (each.partition for each in ranges), topic_ids), ranges)
        if not advance.next_offsets:
            self.tally.add(batch_id, Figures())
            return
        written = Written((), (), 0)
        if advance.ranges:
            written = self._write(frame.sparkSession, table, values, advance.ranges)
        fail_points.reach("archive files written")
        note = {"batch": str(batch_id), **note_of(written.letters, advance.next_offsets, topic_ids)}
        figures = written.figures()
        table.commit(Commit(written.files, advance.next_offsets, note, topic_ids, figures.noted()))
        fail_points.reach("archive committed")
        self.tally.add(batch_id, figures)
        if written.letters:
            self.settle()
        if self.keeper is not None:
            self.keeper.after_batch(frame.sparkSession, (*written.files, *written.letters))

    def _admitted(self, table: LakeTable, ranges: list[Range]) -> list[Range]:
        """What may be added to the table."""
        topic_ids = _topic_ids(ranges)
        known = table.topic_ids(topic_ids)
        names = made_anew(known, topic_ids)
        if names and self.on_new_topic == "refuse":
            raise DataLost(said_of_archive(self.spec.address, names[0], known[names[0]], topic_ids[names[0]]))
        if names and self.on_new_topic == "leave_out":
            for name in names:
                _log.warning(
                    "a topic was made anew and is left out",
                    topic=name,
                    archived_id=known[name],
                    found_id=topic_ids[name],
                    hint="on_new_topic=append adds its records to the table",
                )
            return [each for each in ranges if each.partition.topic not in names]
        present = self.records.topic_ids(names) if names else {}
        gone = [name for name in names if present.get(name) != topic_ids[name]]
        for name in gone:
            # A batch of before, which comes once more: what it was to read is gone, and the table may have the topic that is there.
            _log.warning("a topic was made anew before it was read", topic=name, gone_id=topic_ids[name])
        return [each for each in ranges if each.partition.topic not in gone]

    def settle(self) -> None:
        """Nothing is left to do for the table of dead letters when this is over. Before any commit of the table."""
        if self.letters is not None:
            count = settle(open_table(self.kind, self.spec), open_table(self.kind, self.letters))
            if count:
                _log.warning("values could not be read", rows=count, table=self.letters.address)

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
            choice=self.choice,
            file_bytes_target=self.file_bytes_target,
        )
        found = [
            msgspec.json.decode(bytes(row[0]), type=Handed)
            for row in spark.range(0, len(pieces), 1, len(pieces)).mapInArrow(task, _FILES).collect()
        ]
        written = Written(
            tuple(each.file for each in found if each.file is not None and not each.is_letters),
            tuple(each.file for each in found if each.file is not None and each.is_letters),
            sum(each.read_rows for each in found),
        )
        refuse_unseen(table.target, written.files)
        if letters is not None:
            refuse_unseen(letters.target, written.letters)
        return written


class Written(NamedTuple):
    """What the tasks of one batch have left."""

    files: tuple[WrittenFile, ...]
    letters: tuple[WrittenFile, ...]
    """Those of rows that cannot be read."""
    read_rows: int

    def figures(self) -> Figures:
        letter_count = sum(each.row_count for each in self.letters)
        return Figures(
            read_rows=self.read_rows,
            written_rows=sum(each.row_count for each in self.files),
            written_bytes=sum(each.size_bytes for each in self.files),
            written_files=len(self.files),
            dead_letters=letter_count,
            unreadable_rows=letter_count,
        )


class Handed(Struct, frozen=True):
    """What a task hands to the driver: each of its files, and at last what it has read."""

    file: WrittenFile | None = None
    is_letters: bool = False
    read_rows: int = 0


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
    choice: Choice = Choice()
    file_bytes_target: int

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = open_reader(self.values)
        writer, letters, read_rows = self._writer(self.into), None, 0
        choosing: Choosing | None = None
        for rows, topic_id in self._rows(numbers):
            read_rows += rows.num_rows
            judged = None if self.letters is None else judge(rows, reader)
            good = rows if judged is None else judged.good
            if not self.choice.is_everything:
                choosing = choosing or Choosing(self.choice, good.schema)
                good = choosing.of(good)
            writer.write(with_times(good, self.into.schema, topic_id))
            if judged is not None and self.letters is not None and judged.bad.num_rows:
                letters = letters or self._writer(self.letters)
                bad = judged.bad if self.choice.is_everything else for_letters(self.choice, judged.bad)
                letters.write(with_times(bad, self.letters.schema, topic_id))
        files, left = writer.finish(), [] if letters is None else letters.finish()
        fail_points.reach("archive task written")
        handed = [Handed(each) for each in files] + [Handed(each, is_letters=True) for each in left]
        for each in (*handed, Handed(read_rows=read_rows)):
            yield pa.record_batch({"file": single(msgspec.json.encode(each))})

    def _rows(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, str | None]]:
        """With the id of the topic that they are of."""
        for batch in numbers:
            for number in numbers_in(batch.column(0)):
                piece = self.pieces[number]
                for rows in self.records.read(piece):
                    yield rows, piece.topic_id

    def _writer(self, into: Into) -> FileWriter:
        return FileWriter(into.target, into.schema, file_bytes_target=self.file_bytes_target)
