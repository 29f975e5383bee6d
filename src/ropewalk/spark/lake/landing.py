"""One batch of a query lands in a table: looked up, written by tasks, committed by the driver.

What a reader could get wrong
    Through Spark Connect this runs in a process of the server's, not in the one that started the query: everything it needs is in
    its fields, and the session is the one of the frame.
    Spark calls it again for the same batch after a crash, whether or not the table had got it. What the table has stored decides.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import structlog
from msgspec import Struct

from ropewalk.spark import fail_points
from ropewalk.spark.checkpoints import batch_ranges
from ropewalk.spark.lake.advance import decide_advance
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.places import Place, local_directory
from ropewalk.spark.lake.shaping import new_rows, with_times
from ropewalk.spark.lake.table import Commit, TableSpec, Target, Upkeep, WrittenFile
from ropewalk.spark.lake.writing import FileWriter, write_all
from ropewalk.spark.ranges import Json, Offsets
from ropewalk.spark.refusals import WrongUse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILES: Final = "file binary"
"""What tasks hand back to the driver: a row for each file they wrote."""

_log = structlog.get_logger()


class Landing(Struct, frozen=True, kw_only=True):
    kind: Kind
    spec: TableSpec
    checkpoint: str
    starting: Json
    """Where the query's first batch begins: where the table ended when the query was started."""
    upkeep: Upkeep
    upkeep_batches: int
    """So many batches from one upkeep to the next; 0 for never."""

    def __call__(self, frame: "DataFrame", batch_id: int) -> None:
        ranges = batch_ranges(frame.sparkSession, self.checkpoint, batch_id, self.starting)
        table = open_table(self.kind, self.spec)
        advance = decide_advance(table.next_offsets(each.partition for each in ranges), ranges)
        if not advance.next_offsets:
            return
        files: tuple[WrittenFile, ...] = ()
        if any(each.count for each in ranges):
            task = WriteTask(table.target, table.schema, advance.first_offsets, self.upkeep.file_bytes_target)
            rows = frame.mapInArrow(task, _FILES).collect()
            files = tuple(msgspec.json.decode(bytes(row[0]), type=WrittenFile) for row in rows)
        refuse_unseen(table.target, files)
        fail_points.reach("archive files written")
        table.commit(Commit(files, advance.next_offsets, {"batch": str(batch_id)}))
        fail_points.reach("archive committed")
        if self.upkeep_batches and (batch_id + 1) % self.upkeep_batches == 0:
            _log.info("table maintained", table=self.spec.address, what=table.maintain(self.upkeep))


class WriteTask(Struct, frozen=True):
    """What one task does with its rows."""

    target: Target
    schema: pa.Schema
    first_offsets: Offsets
    file_bytes_target: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = FileWriter(self.target, self.schema, file_bytes_target=self.file_bytes_target)
        written = list(write_all(writer, self._shaped(batches)))
        fail_points.reach("archive task written")
        for file in written:
            yield pa.record_batch({"file": pa.array([msgspec.json.encode(file)], pa.binary())})

    def _shaped(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in batches:
            new = new_rows(rows, self.first_offsets)
            if new.num_rows:
                yield with_times(new, self.schema)


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
