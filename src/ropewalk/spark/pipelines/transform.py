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
from ropewalk.spark.job_names import name_jobs
from ropewalk.spark.lake.judging import dead_letter_schema
from ropewalk.spark.lake.keeping import Keeper, Kept
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.shaping import partition_columns, raw_schema
from ropewalk.spark.lake.table import TableSpec, Upkeep
from ropewalk.spark.lake.terms import day_column
from ropewalk.spark.lake.upkeep import Due
from ropewalk.spark.options import SourceOptions, parse_source
from ropewalk.spark.pipelines.beginnings import Definition
from ropewalk.spark.pipelines.covered import BatchRanges
from ropewalk.spark.pipelines.definition import absolute
from ropewalk.spark.pipelines.judging import Judging, Letters
from ropewalk.spark.pipelines.kept import read_kept
from ropewalk.spark.pipelines.late_rows import windows_of
from ropewalk.spark.pipelines.outputs import Batch, Output, TopicOutput, as_records, refuse_doubles
from ropewalk.spark.pipelines.pipeline import OffsetTable, Started, Work, tally_here
from ropewalk.spark.pipelines.query_shape import Shape
from ropewalk.spark.pipelines.resuming import begin, sink_of, stream_from
from ropewalk.spark.pipelines.row_reading import RowReading
from ropewalk.spark.pipelines.sql_query import SqlQuery, Watermark
from ropewalk.spark.pipelines.table_output import TableOutput, refuse_partition_columns
from ropewalk.spark.pipelines.transform_settings import TransformSettings
from ropewalk.spark.ranges import Progress
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.security import security_properties
from ropewalk.spark.storage import as_written
from ropewalk.spark.values.decoding import ResolvedFormat, resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE_BYTES_TARGET: Final = 128 << 20
"""A file is ended when it is as large, and smaller ones are joined up to it."""
COMPACT_AT: Final = 8
"""So many files below half of that in one directory are joined."""

LETTERS: Final = "_dead_letters"
_EVERYTHING: Final = "records"
"""The view of everything that a pattern or an assignment comes to."""


class Transform:
    summary: ClassVar[str] = "SQL over topics, its rows to a topic or a table, exactly once."

    Settings: ClassVar[type[Struct]] = TransformSettings

    @staticmethod
    def start(work: Work) -> Started:
        """Refuses before a record is read what can be refused by then."""
        settings: TransformSettings = work.settings
        source = parse_source({"bootstrap": work.bootstrap, **work.source}, streaming=True)
        settings.check(source.subscription)
        query = _query(settings, source.subscription.topics)
        streams = {name: stream_from(work, topic) for name, topic in query.views.items()}
        shape = query.shape(work.spark, streams)
        kept = read_kept(work.spark, work.checkpoint)
        output = _output(work, query.over_each(work.spark, streams), sink_of(work, kept))
        definition = _definition(settings, query, output)
        beginning = begin(work, source, query, output, definition, shape, kept)
        judging = _judging(work, source, query, shape)
        each = EachBatch(
            work.name,
            query if shape is Shape.ROW_BY_ROW else None,
            output,
            definition,
            work.checkpoint,
            beginning,
            judging,
        )
        if shape is Shape.ROW_BY_ROW:
            rows = stream_from(work, None, beginning)
        else:
            streams = {name: stream_from(work, topic, beginning) for name, topic in query.views.items()}
            rows = query.over_each(work.spark, streams)
        running = work.writing(rows).outputMode(settings.mode).foreachBatch(each).start()
        return Started(
            running,
            counted_from=beginning.offsets,
            tally=tally_here(work, each.tally),
            counts_late_rows=judging is not None and judging.windows is not None,
        )

    @staticmethod
    def tables(name: str, settings: TransformSettings) -> tuple[OffsetTable, ...]:
        if not settings.to:
            return ()
        spec = TableSpec(
            address=as_written(absolute(settings.to)), owner=name, schema=pa.schema([]), must_exist=True
        )
        return (OffsetTable(settings.table, spec),)

    @staticmethod
    def finish(work: Work) -> None:
        """Tables are kept up, that of dead letters among them. In a topic there is nothing to do."""
        kept = [_kept(work, _spec(work, pa.schema([])))] if work.settings.to else []
        letters = _letters(work)
        if letters is not None:
            kept.append(_kept(work, letters.spec, keep_rows_days=0))
        if kept:
            Keeper(kept, batches_max=work.settings.upkeep_batches).keep_up(work.spark, Due(thorough=True))


class EachBatch:
    """What Spark calls with the rows of every batch: those of topics, if there is a query to take them through, else its own."""

    def __init__(
        self,
        name: str,
        query: SqlQuery | None,
        output: Output,
        definition: Definition,
        checkpoint: str,
        beginning: Progress,
        judging: Judging | None,
    ) -> None:
        self._name = name
        self._query = query
        self._output = output
        self._judging = judging
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
        name_jobs(spark, self._name, number, covered.ranges)
        beside = Figures() if self._judging is None else self._judging.judge(spark, batch)
        written = self._output.write(rows if self._query is None else self._query.over(rows), batch, beside)
        self.tally.add(number, Figures() if written is None else written + beside)
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
        _reading(settings, topics),
        _watermark(settings.watermark),
    )


def _reading(settings: TransformSettings, topics: tuple[str, ...]) -> RowReading:
    watermark = _watermark(settings.watermark)
    return RowReading(
        fields=settings.fields,
        values=resolve(settings.values(), topics),
        keys=_keys(settings, topics),
        event_time="" if watermark is None else watermark.column,
        bad_rows=settings.bad_rows,
    )


def _keys(settings: TransformSettings, topics: tuple[str, ...]) -> ResolvedFormat:
    """What is said of keys is refused under their settings' names."""
    try:
        return resolve(settings.keys(topics), topics)
    except WrongUse as error:
        raise WrongUse(f"of keys: {error} (key_format, key_schema, key_subject, key_message)") from None


def _judging(work: Work, source: SourceOptions, query: SqlQuery, shape: Shape) -> Judging | None:
    """None where every row can be read, and where one that cannot ends the job."""
    reading = query.reading
    windows = None
    if shape is Shape.WITH_STATE and query.watermark is not None:
        windows = windows_of(query.text, query.watermark.column)
    if not reading.can_fail or (reading.bad_rows == "stop" and windows is None):
        return None
    letters = _letters(work)
    if letters is not None:
        open_table(letters.kind, letters.spec)  # what is wrong with it is told before anything is read
    return Judging(
        reading=reading,
        options=source,
        source=work.source,
        letters=letters,
        windows=windows,
        checkpoint=work.checkpoint,
    )


def _letters(work: Work) -> Letters | None:
    """None where every row can be read, or none is set apart."""
    settings: TransformSettings = work.settings
    reads = settings.fields or settings.format != "raw" or settings.key_format != "raw"
    if not reads or settings.bad_rows != "dead_letters":
        return None
    address = settings.dead_letters or f"{(settings.to or work.checkpoint).rstrip('/')}{LETTERS}"
    catalog = dict(settings.catalog)
    if "table" in catalog:
        catalog["table"] += LETTERS
    spec = TableSpec(
        address=as_written(absolute(address)),
        owner=work.name,
        schema=dead_letter_schema(raw_schema("date")),
        partition_columns=partition_columns("date", several_topics=False),
        keep_hours=settings.keep_snapshots_hours,
        catalog=catalog,
        storage=work.storage,
    )
    return Letters(settings.table, spec)


def _watermark(text: str) -> Watermark | None:
    column, _, delay = text.strip().partition(" ")
    if column and not delay:
        raise WrongUse(f'watermark is {text!r}, must be a column and a delay, like "at 10 minutes"')
    return Watermark(column, delay.strip()) if column else None


def _output(work: Work, rows: "DataFrame", sink: str) -> Output:
    settings: TransformSettings = work.settings
    refuse_doubles(rows)
    if settings.to:
        # Whether a column can be null today does not bind the queries of tomorrow.
        columns = to_arrow_schema(rows.schema, timezone="UTC")
        spec = _spec(work, pa.schema([field.with_nullable(True) for field in columns]))
        refuse_partition_columns(settings.partition_by, spec.schema)
        if settings.keep_rows_days:
            day_column(spec.schema, spec.partition_columns)
        keeper = Keeper([_kept(work, spec)], batches_max=settings.upkeep_batches)
        return TableOutput(settings.table, spec, FILE_BYTES_TARGET, keeper)
    as_records(rows, settings.key)
    return TopicOutput(
        work.bootstrap,
        settings.to_topic,
        sink,
        settings.key,
        settings.tasks,
        {**security_properties(work.source), **settings.producer},
    )


def _spec(work: Work, schema: pa.Schema) -> TableSpec:
    settings: TransformSettings = work.settings
    return TableSpec(
        address=as_written(absolute(settings.to)),
        owner=work.name,
        schema=schema,
        partition_columns=tuple(settings.partition_by),
        keep_hours=settings.keep_snapshots_hours,
        catalog=settings.catalog,
        storage=work.storage,
    )


def _kept(work: Work, spec: TableSpec, keep_rows_days: int | None = None) -> Kept:
    settings: TransformSettings = work.settings
    upkeep = Upkeep(
        compact_at=COMPACT_AT,
        file_bytes_target=FILE_BYTES_TARGET,
        keep_hours=spec.keep_hours,
        keep_states=settings.keep_snapshots,
        keep_rows_days=settings.keep_rows_days if keep_rows_days is None else keep_rows_days,
    )
    return Kept(settings.table, spec, upkeep)


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
        format=settings.format,
        message=settings.message,
        unknown_fields=settings.unknown_fields,
        key_format=settings.key_format,
        key_message=settings.key_message,
        bad_rows=settings.bad_rows if query.reading.can_fail else "",
        partition_by=tuple(settings.partition_by),
    )
