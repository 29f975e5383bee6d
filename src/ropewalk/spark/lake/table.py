"""What a kind of table offers to those who archive into it, and what a commit holds.

What a reader could get wrong
    An opened table is what it was when it was opened: offsets are asked, files written and the commit made on that one state.
    If anybody has moved the same partitions on in between, `commit` raises `Overtaken` and nothing has changed. Open it again for the next batch.
    Files are written by tasks on other machines, which know a `Target` and nothing else of the table.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeAlias

import pyarrow as pa
from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.lake.put_back import PutBack
from ropewalk.spark.ranges import Offsets, TopicIds
from ropewalk.spark.storage import Storage

FIGURE: Final = "ropewalk."
"""Before the name of each figure, where a table's format has a place for such things in its commits."""


class TableSpec(Struct, frozen=True, kw_only=True):
    """The table that a job wants. What exists already is checked against it."""

    address: str
    """A directory, or the address of one in an object store."""
    owner: str
    """The name of the job; a table has one, for good."""
    schema: pa.Schema
    """All columns, those it is partitioned by among them."""
    partition_columns: tuple[str, ...] = ()
    keep_hours: int = 168
    """How long earlier states of the table can be read."""
    catalog: dict[str, str] = {}
    """Of Iceberg: the settings of the catalog, as pyiceberg names them, and as `table` the name in it."""
    storage: Storage = Storage()
    """Of an object store: where it is, and by which keys."""
    must_exist: bool = False
    """It is not made where there is none."""


class Target(Struct, frozen=True):
    """Where tasks put files, and in which form."""

    root: str
    """Paths of files are relative to it."""
    partition_columns: tuple[str, ...]
    keeps_partition_columns: bool
    """Whether the files themselves have the columns that their directories are named for."""
    storage: Storage = Storage()


class WrittenFile(Struct, frozen=True):
    """One Parquet file that is complete. Nobody reads it before a commit names it."""

    path: str
    size_bytes: int
    row_count: int
    partition_values: dict[str, str | None]
    modified_at_ms: int
    offset_min: int | None = None
    """None in a table that has no such column, or another one of that name, or rows without it."""
    offset_max: int | None = None
    timestamp_min_ms: int | None = None
    """None, too, where no reader could write the bounds down as a date."""
    timestamp_max_ms: int | None = None
    partition_min: int | None = None
    """Of the column `partition`, where it is a topic's."""
    partition_max: int | None = None


Values: TypeAlias = tuple[tuple[str, str | None], ...]
"""Of the columns that a table is partitioned by, in their order."""


class LiveFile(Struct, frozen=True):
    """A file that the newest state of a table names."""

    path: str
    """Relative to the root of the table's `Target`."""
    size_bytes: int
    row_count: int
    values: Values
    may_be_joined: bool = True
    """Not where somebody has deleted rows of it without writing it anew, or has put it elsewhere."""


class Commit(Struct, frozen=True):
    """Everything that becomes visible at once."""

    files: tuple[WrittenFile, ...]
    next_offsets: Offsets
    """Of the partitions that move; the others stay where they are."""
    note: dict[str, str] = {}
    """For those who read the table's history: the batch, the query. `last_note` gives it back."""
    topic_ids: TopicIds = {}
    """Of the topics that the offsets belong to, as far as they are known. Where the table has offsets of another topic of that name, they are
    forgotten."""
    figures: dict[str, str] = {}
    """For those who read the table's history: what the batch came to (`Figures.noted`)."""


class Upkeep(Struct, frozen=True):
    compact_at: int
    """So many small files of one directory are made into larger ones; 0 for never."""
    file_bytes_target: int
    keep_hours: int
    """How long what was replaced or never committed is kept."""
    keep_states: int = 100
    """How many earlier states of the table can be read at most."""
    keep_rows_days: int = 0
    """How long rows are kept, by the day that their directory is named for; 0 for ever."""


class LakeTable(Protocol):
    """Each kind has a class function `open(spec: TableSpec)` that opens such a table, or makes it where there is none."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def target(self) -> Target: ...

    def next_offsets(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Of those that the table has heard of."""

    def topic_ids(self, topics: Iterable[str]) -> TopicIds:
        """Of the topics that the offsets belong to; none for offsets that were stored without."""

    def widen(self, schema: pa.Schema) -> None:
        """Adds the columns that are missing, nested ones too, null in all rows there are. A column of another type raises `WrongUse`.
        What others have committed since the table was opened may be taken in by this: look at the offsets afterwards."""

    def commit(self, commit: Commit) -> None: ...

    def last_note(self) -> dict[str, str]:
        """Of the newest `commit` there is, whatever others have done to the table since; nothing if there is none."""

    def put_back(self, partitions: Iterable[TopicPartition]) -> PutBack | None:
        """Whether somebody has put the rows back to an earlier state since the newest `commit`, while the offsets of these stayed."""

    def reach(self, topic_ids: TopicIds) -> Offsets:
        """How far the rows themselves reach, all of them read. Raises `WrongUse` if they do not say where they come from."""

    def files(self) -> list[LiveFile]:
        """All of the newest state."""

    def exchange(self, removed: Sequence[LiveFile], added: Sequence[WrittenFile]) -> bool:
        """In one commit that moves no offset: `added` holds the rows of `removed`, or is empty, and then they are deleted. False, and nothing
        has changed, if somebody else has changed those files or the table meanwhile. May be done while a batch is under way."""

    def tidy(self, upkeep: Upkeep, *, thorough: bool, now_ms: int) -> str:
        """Forgets states that are too old or too many and deletes what none that is kept names; with `thorough` also what none has ever named,
        once it is old enough. Gives way to whoever else changes the table. May be done while a batch is under way. Answers with a sentence
        for the log."""
