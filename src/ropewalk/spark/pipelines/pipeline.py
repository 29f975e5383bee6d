"""What a kind of pipeline offers, and what it is given to work with.

    class Count:
        summary = "Counts records."

        class Settings(Struct, frozen=True):
            to: str
            \"""The directory that holds the counts.\"""

        @staticmethod
        def start(work: Work) -> Started:
            counted = work.stream().groupBy("topic").count()
            return Started(work.writing(counted).format("parquet").option("path", work.settings.to).start())

        @staticmethod
        def tables(name: str, settings: Settings) -> tuple[OffsetTable, ...]:
            return ()

        @staticmethod
        def finish(work: Work) -> None: ...

What a reader could get wrong
    Settings are read from a file and from a command line: a field is text, a number, a truth, a list of text or a table of text,
    each with the text below it that `pipeline describe` shows. A field without a default has to be given.
    A field `to` is where the job writes; what Spark has to remember of the job is kept below it unless the user says where else.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct

from ropewalk.spark.figures import Tally
from ropewalk.spark.job_names import is_remote
from ropewalk.spark.lake.kinds import Kind
from ropewalk.spark.lake.table import TableSpec
from ropewalk.spark.ranges import Offsets
from ropewalk.spark.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Work(Struct, frozen=True, kw_only=True):
    """What a pipeline is given."""

    spark: "SparkSession"
    name: str
    """The job's, and the same at every start: checkpoints, transactional ids and marks in tables are told apart by it."""
    bootstrap: str
    source: dict[str, str]
    """Options of the source, all but `bootstrap`."""
    checkpoint: str
    """A directory of any file system that Spark knows."""
    once: bool
    """Up to what is there when it starts; otherwise until it is stopped, a batch every `interval`."""
    interval: str
    settings: Any
    """The kind's `Settings`."""
    storage: Storage = Storage()
    """Of object stores that the job writes to."""
    sink: str | None = None
    """Under which name it writes to topics; None for its own."""

    def stream(self, **more: str) -> "DataFrame":
        """The job's topics, as the source gives them. `more` are options of the source that win over the user's."""
        options = {"bootstrap": self.bootstrap, **self.source, **more}
        return self.spark.readStream.format("ropewalk").options(**options).load()

    def writing(self, frame: "DataFrame") -> "DataStreamWriter":
        """A query that is named for the job, with its checkpoint and its trigger; where it writes to is still to be said."""
        writer = frame.writeStream.queryName(self.name).option("checkpointLocation", self.checkpoint)
        return (
            writer.trigger(availableNow=True) if self.once else writer.trigger(processingTime=self.interval)
        )


class Started(Struct, frozen=True):
    query: "StreamingQuery"
    """Not waited for."""
    counted_from: Offsets | None = None
    """Where the first batch of the query begins, which Spark does not say. None if nobody knows."""
    tally: Tally | None = None
    """What batches come to, as tasks count it. None where nobody does, or in another process."""
    reads_by_itself: bool = False
    """Tasks read records themselves, and Spark sees no row of them."""
    counts_late_rows: bool = False
    """The tally has the rows that came too late. Else Spark's own count of them is taken."""


def tally_here(work: Work, tally: Tally) -> Tally | None:
    """The tally, if batches are run by this process: a Connect server runs them in one of its own."""
    return None if is_remote(work.spark) else tally


class OffsetTable(Struct, frozen=True):
    """A table of a job's that keeps offsets, to be looked at: it is not made where there is none."""

    kind: Kind
    spec: TableSpec


class Pipeline(Protocol):
    summary: ClassVar[str]
    """One sentence, for lists."""
    Settings: ClassVar[type[Struct]]

    @staticmethod
    def start(work: Work) -> Started: ...

    @staticmethod
    def tables(name: str, settings: Any) -> tuple[OffsetTable, ...]:
        """Where a job of that name keeps how far it has come, the table that decides first; none if it writes to topics."""

    @staticmethod
    def finish(work: Work) -> None:
        """What is to be done after a bounded run has ended well; may be nothing."""
