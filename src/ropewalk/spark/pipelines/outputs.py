"""Where a transform's rows go: what an output offers, and topics, to which every row is a record. Tables: `table_output.py`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyspark import TaskContext
from pyspark.sql import functions
from pyspark.sql.types import BinaryType, StringType

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.columns import Column as SourceColumn
from ropewalk.spark.figures import NOTHING, Figures
from ropewalk.spark.numbers import single
from ropewalk.spark.options import OnNewTopic
from ropewalk.spark.ranges import TopicIds
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.sink.incoming import check_columns
from ropewalk.spark.sink.marker import Decision, Ranges, ranges_to_text
from ropewalk.spark.sink.options import SinkOptions, parse_sink
from ropewalk.spark.sink.recovery import Resumption, in_topics, resumption

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TAKEN_ALONG: Final = ("headers", "timestamp")
_FIGURES: Final = "figures binary"
"""What tasks hand back to the driver."""


class Batch(Struct, frozen=True):
    """What makes a batch the same batch when it comes again."""

    query: str
    number: int
    ranges: Ranges
    fingerprint: str
    topic_ids: TopicIds = {}
    """Of the topics that it was made from, as far as they are known."""


class Output(Protocol):
    @property
    def title(self) -> str:
        """By which a checkpoint knows it again."""

    @property
    def topic(self) -> str | None:
        """None if it is no topic."""

    def resumption(
        self, partitions: Sequence[TopicPartition], topic_ids: TopicIds, *, on_new_topic: OnNewTopic
    ) -> Resumption | None:
        """How far the job has come, as the output tells; None if it holds nothing of it. Whoever writes for the job is kept from
        it from here on."""

    def take_over(self) -> None:
        """What was written so far is of another query than what follows, and that one is over."""

    def write(self, rows: "DataFrame", batch: Batch, beside: Figures = NOTHING) -> Figures | None:
        """Once, however often it is called with the same batch. What was written this time; None if it had the batch and no row was asked for.
        `beside` is what became of rows that are not in `rows`, for who keeps a record of batches."""


class TopicOutput(Struct, frozen=True):
    bootstrap: str
    topic: str
    name: str
    key: str
    tasks: int
    producer: dict[str, str]

    @property
    def title(self) -> str:
        return f"topic {self.topic}"

    def resumption(
        self, partitions: Sequence[TopicPartition], topic_ids: TopicIds, *, on_new_topic: OnNewTopic
    ) -> Resumption | None:
        del partitions  # markers name their own
        from ropewalk.spark.sink.transaction import fenced_markers  # here: it loads compiled loops

        found = resumption(fenced_markers(parse_sink(self._options(), streaming=False)), topic_ids)
        return None if found is None else in_topics(found, topic_ids, on_new_topic=on_new_topic)

    def take_over(self) -> None:
        from ropewalk.spark.sink.transaction import release

        release(parse_sink(self._options(), streaming=False))

    def write(self, rows: "DataFrame", batch: Batch, beside: Figures = NOTHING) -> Figures | None:
        """Rows are made to be sent to their tasks, of which each finds out for itself whether it has them.

        Not by the sink's own writer, which is the same: what its tasks answer stays in Spark.
        """
        del beside  # a topic has no commits that could tell
        placed = self.placed(rows)
        options = parse_sink(self.options(batch), streaming=False)
        task = SendTask(options, check_columns(placed.schema, self.topic), batch.query, batch.number)
        sent = [
            msgspec.json.decode(bytes(row[0]), type=Figures)
            for row in placed.mapInArrow(task, _FIGURES).collect()
        ]
        if len(sent) != self.tasks:
            raise WrongUse(
                f"{len(sent)} tasks have written where {self.tasks} were asked for: Spark has joined some of them; leave"
                " spark.sql.adaptive settings as they come"
            )
        return sum(sent, Figures())

    def placed(self, rows: "DataFrame") -> "DataFrame":
        """Every row in the task that it is in in every other attempt: by its key, or by its value where there is none."""
        records = as_records(rows, self.key)
        places = [functions.col(name) for name in ("key", "value") if name in records.columns]
        return records.repartition(self.tasks, functions.coalesce(*places))

    def options(self, batch: Batch) -> dict[str, str]:
        """Of the sink."""
        return {
            **self._options(),
            "query": batch.query,
            "batch": str(batch.number),
            "ranges": ranges_to_text(batch.ranges, batch.topic_ids),
            "fingerprint": batch.fingerprint,
        }

    def _options(self) -> dict[str, str]:
        return {
            "bootstrap": self.bootstrap,
            "topic": self.topic,
            "exactlyOnce": "true",
            "name": self.name,
            "tasks": str(self.tasks),
            **{f"kafka.{name}": value for name, value in self.producer.items()},
        }


class SendTask(Struct, frozen=True):
    """What one task does with its rows."""

    options: SinkOptions
    columns: tuple[SourceColumn, ...]
    query: str
    batch: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from ropewalk.spark.sink.transaction import write_once  # here: it loads compiled loops

        context = TaskContext.get()
        assert context is not None, "only tasks write"
        counted = Counted(batches)
        row_count, decision = write_once(
            self.options,
            self.columns,
            counted,
            task=context.partitionId(),
            query=self.query,
            batch=self.batch,
        )
        figures = Figures()
        if decision is Decision.WRITE:
            figures = Figures(written_rows=row_count, written_bytes=counted.byte_count)
        yield pa.record_batch({"figures": single(msgspec.json.encode(figures))})


class Counted:
    """Rows on their way, and how many bytes their keys and values have."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.byte_count = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        rows = next(self._batches)
        for name in ("key", "value"):
            at = rows.schema.get_field_index(name)
            if at >= 0:
                self.byte_count += pc.sum(pc.binary_length(rows.column(at))).as_py() or 0
        return rows


def refuse_doubles(rows: "DataFrame") -> None:
    twice = sorted({name for name in rows.columns if rows.columns.count(name) > 1})
    if twice:
        raise WrongUse(f"the SQL gives {', '.join(twice)} twice; rename with AS")


def as_records(rows: "DataFrame", key: str) -> "DataFrame":
    """`key` names the column of the records' keys; without it that is `key`, if there is one.

    Rows that have a column `value` are records already. Of others all columns together are the value, as JSON; a column `key`
    that was not named is only the key.
    """
    names = rows.columns
    if key and key not in names:
        raise WrongUse(f"key is {key!r}, and the SQL gives {', '.join(names)}")
    chosen: list[Column] = []
    key_column = key or ("key" if "key" in names else "")
    if key_column:
        chosen.append(_as_bytes(rows, key_column).alias("key"))
    if "value" in names:
        chosen.append(_as_bytes(rows, "value").alias("value"))
        chosen += [functions.col(name) for name in _TAKEN_ALONG if name in names]
    else:
        told = [functions.col(f"`{name}`") for name in names if key or name != "key"]
        if not told:
            raise WrongUse(
                "the SQL gives a key and nothing else; add a column value, or others to make one of"
            )
        chosen.append(functions.to_json(functions.struct(*told)).cast("binary").alias("value"))
    return rows.select(*chosen)


def _as_bytes(rows: "DataFrame", name: str) -> "Column":
    column = functions.col(f"`{name}`")
    kind = rows.schema[name].dataType
    if isinstance(kind, BinaryType):
        return column
    if not isinstance(kind, StringType) and kind.simpleString().startswith(
        ("struct", "array", "map", "variant")
    ):
        return functions.to_json(column).cast("binary")
    return column.cast("string").cast("binary")
