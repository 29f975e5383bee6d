"""`transform`: SQL over topics, its rows to a topic or a table, exactly once.

    ropewalk pipeline run transform --topic orders --to-topic big-orders --checkpoint ./progress \\
        --fields "item string, amount double" --sql "SELECT item AS key, amount FROM orders WHERE amount > 100"

What a reader could get wrong
    Each topic is a view by its name. A query that takes every row for itself runs on each batch of one source; any other is a
    streaming query over one source per view, and Spark keeps its state in the checkpoint.
    What is called for each batch is sent to where the driver is, which over Spark Connect is another machine. So it holds texts and
    numbers, and finds its session in the frame that it is given.
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
from msgspec import Struct
from pyspark.sql.pandas.types import to_arrow_schema

from ropewalk.spark import fail_points
from ropewalk.spark.checkpoints import query_id
from ropewalk.spark.figures import Figures, Tally
from ropewalk.spark.lake.keeping import Keeper, Kept
from ropewalk.spark.lake.kinds import Kind
from ropewalk.spark.lake.table import TableSpec, Upkeep
from ropewalk.spark.lake.terms import day_column
from ropewalk.spark.lake.upkeep import Due
from ropewalk.spark.options import Subscription, parse_source
from ropewalk.spark.pipelines.beginnings import Definition
from ropewalk.spark.pipelines.covered import BatchRanges
from ropewalk.spark.pipelines.definition import absolute
from ropewalk.spark.pipelines.outputs import Batch, Output, TopicOutput, as_records, refuse_doubles
from ropewalk.spark.pipelines.pipeline import Started, Work, tally_here
from ropewalk.spark.pipelines.query_shape import Shape
from ropewalk.spark.pipelines.resuming import begin, stream_from
from ropewalk.spark.pipelines.sql_query import SqlQuery, Watermark
from ropewalk.spark.pipelines.table_output import TableOutput
from ropewalk.spark.ranges import Offsets
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.storage import as_written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE_BYTES_TARGET: Final = 128 << 20
"""A file is ended when it is as large, and smaller ones are joined up to it."""
COMPACT_AT: Final = 8
"""So many files below half of that in one directory are joined."""

_EVERYTHING: Final = "records"
"""The view of everything that a pattern or an assignment comes to."""


class TransformSettings(Struct, frozen=True, kw_only=True):
    sql: str = ""
    """The query. Every topic is a view by its name, with the columns of the source; `records` is what a pattern comes to."""
    sql_file: str = ""
    """A file that holds the query, in place of `sql`."""
    to_topic: str = ""
    """The topic that rows go to as records. It must exist."""
    to: str = ""
    """The table that rows go to, in place of a topic: a directory or the address of one."""
    table: Kind = "delta"
    """The kind of that table."""
    key: str = ""
    """The column that is the records' key; without it that is `key`, if the query gives one."""
    fields: str = ""
    """Columns of values that are JSON, as in `item string, amount double, at timestamp`: views have them beside the source's."""
    views: dict[str, str] = {}
    """Names for topics in the query, as `orders=shop.orders.v1`."""
    watermark: str = ""
    """The column of event time in every view, and how late it may be: `at 10 minutes`."""
    mode: str = "append"
    """`append`: a row when it is final; `update`: whenever it changes, to a topic only."""
    tasks: int = 4
    """How many tasks write to the topic, each in transactions of its own. It may never change."""
    producer: dict[str, str] = {}
    """Settings of the producer under Kafka's names, as `compression.type=zstd`."""
    keep_snapshots: int = 100
    """How many earlier states of the table can be read at most. Of Iceberg these are the newest and some of every day."""
    keep_rows_days: int = 0
    """How long rows of the table are kept: so many days after the day that their directory is named for it is deleted. 0 for ever."""
    upkeep_batches: int = 100
    """So many batches at most from one upkeep of the table to the next; after a bounded run there is always one. 0 for never."""


class Transform:
    summary: ClassVar[str] = "SQL over topics, its rows to a topic or a table, exactly once."

    Settings: ClassVar[type[Struct]] = TransformSettings

    @staticmethod
    def start(work: Work) -> Started:
        """Refuses before a record is read what can be refused by then."""
        settings: TransformSettings = work.settings
        source = parse_source({"bootstrap": work.bootstrap, **work.source}, streaming=True)
        query = _query(settings, source.subscription.topics)
        _refuse(settings, source.subscription)
        streams = {name: stream_from(work, topic) for name, topic in query.views.items()}
        shape = query.shape(work.spark, streams)
        output = _output(work, query.over_each(work.spark, streams))
        definition = _definition(settings, query, output)
        beginning = begin(work, source, query, output, definition, shape)
        each = EachBatch(
            query if shape is Shape.ROW_BY_ROW else None, output, definition, work.checkpoint, beginning
        )
        if shape is Shape.ROW_BY_ROW:
            rows = stream_from(work, None, beginning)
        else:
            streams = {name: stream_from(work, topic, beginning) for name, topic in query.views.items()}
            rows = query.over_each(work.spark, streams)
        running = work.writing(rows).outputMode(settings.mode).foreachBatch(each).start()
        return Started(running, counted_from=beginning, tally=tally_here(work, each.tally))

    @staticmethod
    def finish(work: Work) -> None:
        """Tables are kept up. In a topic there is nothing to do."""
        if work.settings.to:
            _keeper(work, _spec(work, pa.schema([]))).keep_up(work.spark, Due(thorough=True))


class EachBatch:
    """What Spark calls with the rows of every batch: those of topics, if there is a query to take them through, else its own."""

    def __init__(
        self,
        query: SqlQuery | None,
        output: Output,
        definition: Definition,
        checkpoint: str,
        beginning: Offsets,
    ) -> None:
        self._query = query
        self._output = output
        self._fingerprint = definition.fingerprint()
        self._checkpoint = checkpoint
        self._ranges = BatchRanges(checkpoint, beginning)
        self._query_id: str | None = None
        self.tally = Tally()

    def __call__(self, rows: "DataFrame", number: int) -> None:
        spark = rows.sparkSession
        if self._query_id is None:
            self._query_id = query_id(spark, self._checkpoint)
        covered = self._ranges.of(spark, number)
        batch = Batch(self._query_id, number, covered.ranges, self._fingerprint, covered.topic_ids)
        written = self._output.write(rows if self._query is None else self._query.over(rows), batch)
        self.tally.add(number, written or Figures())
        if written is None and self._query is None:
            # The output has these rows already, but what is counted in the checkpoint comes to be only while rows are made.
            rows.write.format("noop").mode("overwrite").save()
        fail_points.reach("transform committed")


def _query(settings: TransformSettings, topics: tuple[str, ...]) -> SqlQuery:
    if bool(settings.sql) == bool(settings.sql_file):
        raise WrongUse("give the query as sql or as sql_file, one of them")
    text = settings.sql
    if settings.sql_file:
        try:
            text = Path(settings.sql_file).read_text()
        except OSError as error:
            raise WrongUse(f"sql_file cannot be read: {error}") from None
    unread = sorted(set(settings.views.values()) - set(topics))
    if unread:
        raise WrongUse(f"views name {', '.join(unread)}, which the job does not read; add it to its topics")
    named = {topic: name for name, topic in settings.views.items()}
    if len(named) < len(settings.views):
        raise WrongUse("two views name the same topic; name one of them twice in the query instead")
    views: dict[str, str | None] = {named.get(topic, topic): topic for topic in topics}
    return SqlQuery(
        text.strip().rstrip(";"),
        views or {_EVERYTHING: None},
        settings.fields,
        _watermark(settings.watermark),
    )


def _watermark(text: str) -> Watermark | None:
    column, _, delay = text.strip().partition(" ")
    if column and not delay:
        raise WrongUse(f'watermark is {text!r}, must be a column and a delay, like "at 10 minutes"')
    return Watermark(column, delay.strip()) if column else None


def _refuse(settings: TransformSettings, subscription: Subscription) -> None:
    if bool(settings.to_topic) == bool(settings.to):
        raise WrongUse("say where rows go: to_topic or to, one of them")
    if settings.mode not in ("append", "update"):
        raise WrongUse(f"mode is {settings.mode!r}, must be append or update")
    if settings.mode == "update" and settings.to:
        raise WrongUse("a table takes rows that are final: say mode=append, or send updates to a topic")
    for name, least in (("keep_snapshots", 10), ("keep_rows_days", 0), ("upkeep_batches", 0)):
        if getattr(settings, name) < least:
            raise WrongUse(f"{name} is {getattr(settings, name)}, must be at least {least}")
    if settings.tasks < 1:
        raise WrongUse(f"tasks is {settings.tasks}, must be at least 1")
    assigned = {each.topic for each in subscription.assigned}
    if settings.to_topic and (subscription.takes(settings.to_topic) or settings.to_topic in assigned):
        raise WrongUse(
            f"the job reads {settings.to_topic} and would read what it writes; choose another topic"
        )


def _output(work: Work, rows: "DataFrame") -> Output:
    settings: TransformSettings = work.settings
    refuse_doubles(rows)
    if settings.to:
        # Whether a column can be null today does not bind the queries of tomorrow.
        columns = to_arrow_schema(rows.schema, timezone="UTC")
        spec = _spec(work, pa.schema([field.with_nullable(True) for field in columns]))
        if settings.keep_rows_days:
            day_column(spec.schema, spec.partition_columns)
        return TableOutput(settings.table, spec, FILE_BYTES_TARGET, _keeper(work, spec))
    as_records(rows, settings.key)
    return TopicOutput(
        work.bootstrap, settings.to_topic, work.name, settings.key, settings.tasks, settings.producer
    )


def _spec(work: Work, schema: pa.Schema) -> TableSpec:
    return TableSpec(
        address=as_written(absolute(work.settings.to)), owner=work.name, schema=schema, storage=work.storage
    )


def _keeper(work: Work, spec: TableSpec) -> Keeper:
    settings: TransformSettings = work.settings
    upkeep = Upkeep(
        compact_at=COMPACT_AT,
        file_bytes_target=FILE_BYTES_TARGET,
        keep_hours=spec.keep_hours,
        keep_states=settings.keep_snapshots,
        keep_rows_days=settings.keep_rows_days,
    )
    return Keeper([Kept(settings.table, spec, upkeep)], batches_max=settings.upkeep_batches)


def _definition(settings: TransformSettings, query: SqlQuery, output: Output) -> Definition:
    return Definition(
        sql=query.text,
        output=output.title,
        key=settings.key,
        mode=settings.mode,
        tasks=settings.tasks,
        views=query.views,
        fields=settings.fields,
        watermark=settings.watermark,
    )
