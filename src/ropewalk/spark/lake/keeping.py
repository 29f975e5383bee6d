"""Tables are kept up: days that are over deleted, small files joined by tasks, states that nobody needs forgotten. Beside batches, never within one.

What a reader could get wrong
    A batch never waits for upkeep. It is a thread of the driver's, which submits jobs of its own; each has no more tasks than half of the cores,
    and each task makes one file, so that the tasks of a batch find a core however Spark orders jobs.
    Upkeep commits like anybody else who changes the table and moves no offset. Where it loses against a batch it tries again a few times and
    then leaves it for the next time; a batch that loses against it looks again and commits on what is there.
    What goes wrong with files or with Spark is said and left for the next time as well. A mistake in the code itself ends the next batch.
    Through Spark Connect a keeper comes to the server's process by pickle, with its thread left behind.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import structlog
from deltalake.exceptions import DeltaError
from msgspec import Struct

from ropewalk.spark.lake.joining import Joined, Joiner, JoinTask
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.table import LakeTable, TableSpec, Upkeep, WrittenFile
from ropewalk.spark.lake.terms import day_column
from ropewalk.spark.lake.unseen import refuse_unseen
from ropewalk.spark.lake.upkeep import Due, Join, Schedule, joins, over
from ropewalk.spark.refusals import Refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JOINED: Final = "joined binary"
"""What tasks hand back to the driver: a row for each join."""

ROUNDS_MAX: Final = 64
"""Jobs of one upkeep; what is left is for the next one. A table that was never kept up takes several."""

_log = structlog.get_logger()


class Kept(Struct, frozen=True):
    """A table and the terms on which it is kept up."""

    kind: Kind
    spec: TableSpec
    upkeep: Upkeep


def keep_up(kept: Kept, join: Joiner, *, at_once: int = 1, thorough: bool = True, now_ms: int) -> str:
    """Everything that is to be done for the table by now. Answers with a sentence for the log."""
    table = open_table(kept.kind, kept.spec)
    deleted = _delete_days(table, kept, now_ms)
    joined = _join_files(table, kept, join, at_once)
    told = table.tidy(kept.upkeep, thorough=thorough, now_ms=now_ms)
    days = f"{deleted} files of days that are over deleted, " if kept.upkeep.keep_rows_days else ""
    return f"{days}{joined} small files joined, {told}"


def _delete_days(table: LakeTable, kept: Kept, now_ms: int) -> int:
    if not kept.upkeep.keep_rows_days:
        return 0
    gone = over(table.files(), day_column(table.schema, table.target.partition_columns), kept.upkeep, now_ms)
    return len(gone) if gone and table.exchange(gone, ()) else 0


def _join_files(table: LakeTable, kept: Kept, join: Joiner, at_once: int) -> int:
    count = 0
    wanted = joins(table.files(), kept.upkeep)
    for first in range(0, min(len(wanted), at_once * ROUNDS_MAX), at_once):
        round_ = tuple(wanted[first : first + at_once])
        task = JoinTask(
            target=table.target,
            schema=table.schema,
            joins=round_,
            file_bytes_target=kept.upkeep.file_bytes_target,
        )
        for said in join(task):
            count += _take(table, round_[said.number], said)
    return count


def _take(table: LakeTable, join: Join, said: Joined) -> int:
    """How many files were replaced."""
    if said.fault is None:
        refuse_unseen(table.target, said.files)
        found = sum(each.row_count for each in said.files)
        assert found == join.row_count, f"{join.row_count} rows were to be joined, and {found} were written"
        if table.exchange(join.files, said.files):
            return len(join.files)
    else:
        _log.info("small files stay as they are", table=table.target.root, why=said.fault)
    return 0


class SparkJoiner:
    """Has joins made by tasks."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def __call__(self, task: JoinTask) -> list[Joined]:
        count = len(task.joins)
        rows = self._spark.range(0, count, 1, count).mapInArrow(task, _JOINED).collect()
        return [msgspec.json.decode(bytes(row[0]), type=Joined) for row in rows]

    @property
    def at_once(self) -> int:
        """Half of the cores, as far as they are known: those of a Connect server are not."""
        from pyspark.errors import PySparkException

        try:
            return max(1, self._spark.sparkContext.defaultParallelism // 2)
        except PySparkException:
            return 1


class Keeper:
    """Keeps tables up while a query runs that writes to them."""

    def __init__(self, tables: Iterable[Kept], *, batches_max: int) -> None:
        self._tables = tuple(tables)
        self._batches_max = batches_max
        compact_at = min((each.upkeep.compact_at for each in self._tables), default=0)
        self._schedule = Schedule(batches_max=batches_max, compact_at=compact_at)
        self._thread: ThreadPoolExecutor | None = None
        self._running: Future[None] | None = None

    def __reduce__(self) -> tuple[Callable[..., "Keeper"], tuple[tuple[Kept, ...], int]]:
        return _keeper, (self._tables, self._batches_max)

    def after_batch(self, spark: "SparkSession", files: Iterable[WrittenFile]) -> None:
        """Tells of a batch that is committed. Returns at once, whatever there is to do."""
        now_ms = int(time.time() * 1000)
        due = self._schedule.on_batch(files, now_ms)
        if due is None or (self._running is not None and not self._running.done()):
            return
        if self._running is not None:
            self._running.result()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "upkeep")
        self._schedule.on_begun(due, now_ms)
        self._running = self._thread.submit(self.keep_up, spark, due)

    def keep_up(self, spark: "SparkSession", due: Due) -> None:
        """Whatever goes wrong with one table is said, and the others are kept up all the same."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        join = SparkJoiner(spark)
        for each in self._tables:
            now_ms = int(time.time() * 1000)
            try:
                said = keep_up(each, join, at_once=join.at_once, thorough=due.thorough, now_ms=now_ms)
            except (Refusal, OSError, pa.ArrowException, DeltaError, PySparkException, Py4JError) as error:
                _log.warning("upkeep is left for the next time", table=each.spec.address, why=str(error))
            else:
                _log.info("table maintained", table=each.spec.address, what=said)

    def wait(self) -> None:
        """Until what is under way is over."""
        if self._running is not None:
            self._running.result()


def _keeper(tables: tuple[Kept, ...], batches_max: int) -> Keeper:
    return Keeper(tables, batches_max=batches_max)
