"""Topics → a table of the lake, each record exactly once, from the first record there is.

What a reader could get wrong
    Where to go on is kept in the table, with the rows. Spark's checkpoint only saves the work of looking there: if it is lost, the
    job goes on where the table ends; if it is ahead of the table, the job stops before it leaves records out.
    Tasks read records themselves (`landing.py`). What the query is for is Spark's bookkeeping: when there is a batch, and its bounds.
    Where a job begins that is not to begin at the earliest record is written into the table before the first batch: brokers would
    give another answer to the same question later.
"""

import json
import os
from typing import ClassVar, Final, Literal, NamedTuple

import pyarrow as pa
from msgspec import Struct, structs

from ropewalk.spark.brokers import Brokers
from ropewalk.spark.job_names import is_remote
from ropewalk.spark.lake.choosing import Choice, read_secret
from ropewalk.spark.lake.judging import dead_letter_schema, value_schema
from ropewalk.spark.lake.keeping import Keeper, Kept
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.landing import Landing, said_of_archive, stored_of
from ropewalk.spark.lake.shaping import PartitionBy, partition_columns, raw_schema
from ropewalk.spark.lake.table import Commit, TableSpec, Upkeep
from ropewalk.spark.lake.terms import day_column
from ropewalk.spark.lake.upkeep import Due
from ropewalk.spark.options import EARLIEST, NUMBER_MAX, AtOffsets, SourceOptions, parse_source
from ropewalk.spark.pipelines.definition import absolute
from ropewalk.spark.pipelines.pipeline import OffsetTable, Started, Work, tally_here
from ropewalk.spark.pipelines.settings import UPKEEP_BOUNDS, bound
from ropewalk.spark.ranges import Offsets, TopicIds, made_anew, to_json
from ropewalk.spark.reading import TopicRecords
from ropewalk.spark.refusals import DataLost
from ropewalk.spark.storage import as_written
from ropewalk.spark.values.decoding import ValueFormat, open_reader, resolve

LETTERS: Final = "_dead_letters"
TASKS_PER_CORE: Final = 2
"""Of a batch that is large enough: where one task is slower than others, the cores that are done have more to do."""
TASKS_UNKNOWN: Final = 8
"""Behind a Connect server, which does not say how many cores it has."""


class ArchiveSettings(Struct, frozen=True, kw_only=True):
    to: str
    """The table: a directory, or its address in an object store."""
    table: Kind = "delta"
    """What kind of table: delta, iceberg, or parquet for plain directories."""
    format: Literal["raw", "json", "avro", "protobuf"] = "raw"
    """What values are. All but raw become columns inside `value`; those that cannot be read go to a table of dead letters."""
    schema: str | None = None
    """A file with the schema of values: JSON Schema, a schema of Avro, or descriptors as `protoc --include_imports` writes them."""
    registry: str | None = None
    """The URL of a schema registry, user and password in it where they are needed. Values then have its prefix of five bytes."""
    subject: str | None = None
    """Whose newest schema in the registry gives the columns, if no file does. The topic's name and `-value` unless told."""
    message: str | None = None
    """Of Protobuf: the message's full name. The first one of the file unless told."""
    prefix: bool = False
    """Values have a registry's prefix, though no registry is named; it is taken off."""
    unknown_fields: Literal["ignore", "keep", "refuse"] = "ignore"
    """Of JSON: what becomes of fields that the schema does not name. Kept ones are in `value._rest`, as text."""
    dead_letters: str | None = None
    """The table of values that cannot be read. Beside the table unless told, with `_dead_letters` at the end of its name."""
    catalog: dict[str, str] = {}
    """Of Iceberg: the catalog as pyiceberg describes one (type, uri, …), and as `table` the name in it. A file beside the table unless told."""
    columns: list[str] = []
    """Those that are written, as `key` or `value.amount`; all of them unless told. `date`, `hour` and `topic_id` always are."""
    where: str = ""
    """Which rows are written, as in SQL: `value.amount >= 100 AND topic = 'orders'`. Others are passed over for good."""
    mask: dict[str, str] = {}
    """What is hidden of columns, as `value.card=last 4`: `drop`, `hash` under the secret, or `last N` characters."""
    mask_secret_file: str | None = None
    """The file that holds the secret of `hash`; the variable ROPEWALK_MASK_SECRET unless told."""
    on_new_topic: Literal["refuse", "append"] = "refuse"
    """What to do when a topic was deleted and made anew under its name: end, or add the new one's records from its start on. Rows have a column
    `topic_id` with append. Of a pattern the other topics go on with either."""
    partition_by: PartitionBy = "date"
    """A directory for each date of records' timestamps, for each hour, or none. Several topics have one each above."""
    batch_bytes: int = 1 << 30
    """How much a batch takes at most, by what brokers say of the sizes of logs, so that a long run that fails is not begun again as a whole.
    0 for all that is there."""
    file_bytes_target: int = 128 << 20
    """A file is ended when it is as large, and smaller ones are joined up to it."""
    compact_small_files: int = 8
    """So many files below half of the target in one directory are joined; 0 for never. Not of plain directories."""
    keep_snapshots_hours: int = 168
    """How long earlier states of the table can be read, and files that nobody needs are kept."""
    keep_snapshots: int = 100
    """How many earlier states of the table can be read at most. Of Iceberg these are the newest and some of every day."""
    keep_rows_days: int = 0
    """How long rows are kept: so many days after the day of their timestamp it is deleted as a whole. 0 for ever."""
    upkeep_batches: int = 100
    """So many batches at most from one upkeep to the next while it runs; after a bounded run there is always one. 0 for never."""

    def __post_init__(self) -> None:
        bound(
            self,
            {
                "batch_bytes": (0, NUMBER_MAX),
                "file_bytes_target": (1 << 10, NUMBER_MAX),
                "compact_small_files": (0, NUMBER_MAX),
                **UPKEEP_BOUNDS,
            },
        )
        if not self.to.strip():
            raise ValueError("to is empty; name a directory, or an address in an object store")
        if self.dead_letters and absolute(self.dead_letters) == absolute(self.to):
            raise ValueError(
                f"dead_letters is {self.dead_letters!r}, which is the table itself; name another"
            )
        if self.catalog and self.table != "iceberg":
            raise ValueError(
                f"a catalog has no use for table {self.table}; say table=iceberg, or leave it out"
            )

    def choice(self) -> Choice:
        """Reads the secret, where a mask needs one."""
        secret = read_secret(self.mask_secret_file, os.environ) if self.mask else b""
        return Choice(columns=tuple(self.columns), where=self.where, masks=self.mask, secret=secret)

    def values(self) -> ValueFormat:
        return ValueFormat(
            format=self.format,
            schema=None if self.schema is None else absolute(self.schema),
            registry=self.registry,
            subject=self.subject,
            message=self.message,
            prefix=self.prefix,
            unknown_fields=self.unknown_fields,
        )


class Archive:
    summary: ClassVar[str] = "Topics to a table of the lake, each record exactly once."
    Settings: ClassVar[type[Struct]] = ArchiveSettings

    @staticmethod
    def start(work: Work) -> Started:
        options = _options(work)
        landing = _landing(work, options)
        beginning = _beginning(options, landing)
        landing = structs.replace(landing, starting=to_json(beginning.starting, beginning.topic_ids))
        query = work.writing(_from(work, options, beginning).stream()).foreachBatch(landing).start()
        return Started(
            query, counted_from=beginning.found, tally=tally_here(work, landing.tally), reads_by_itself=True
        )

    @staticmethod
    def tables(name: str, settings: ArchiveSettings) -> tuple[OffsetTable, ...]:
        # Whether topics have directories of their own is the table's to say, and so are its columns.
        spec = _spec(settings, name, several_topics=False, with_topic_id=False)
        looked = [spec] if settings.format == "raw" else [spec, _letters(settings, spec)]
        return tuple(
            OffsetTable(settings.table, structs.replace(each, schema=pa.schema([]), must_exist=True))
            for each in looked
        )

    @staticmethod
    def finish(work: Work) -> None:
        keeper = _landing(work, _options(work)).keeper
        assert keeper is not None
        keeper.keep_up(work.spark, Due(thorough=True))


def _options(work: Work) -> SourceOptions:
    """What is said of new topics may be said to the job or to the source that it reads."""
    options = parse_source({"bootstrap": work.bootstrap, **work.source}, streaming=True)
    if _settings(work).on_new_topic == "append":
        return structs.replace(options, takes_new_topics=True)
    return options


def _landing(work: Work, options: SourceOptions) -> Landing:
    settings = _settings(work)
    topics = tuple(
        sorted({*options.subscription.topics, *(each.topic for each in options.subscription.assigned)})
    )
    values = resolve(settings.values(), topics)
    is_pattern = options.subscription.pattern is not None
    spec = _spec(
        settings,
        work.name,
        several_topics=is_pattern or len(topics) > 1,
        with_topic_id=options.takes_new_topics,
    )
    spec = structs.replace(spec, storage=work.storage)
    if settings.keep_rows_days:
        day_column(spec.schema, spec.partition_columns)
    letters = None if settings.format == "raw" else _letters(settings, spec)
    topic_schema, whole = spec.schema, value_schema(spec.schema, open_reader(values).schema())
    choice = settings.choice()
    choice.check(whole)
    spec = structs.replace(spec, schema=choice.schema(whole))
    return Landing(
        records=TopicRecords(options, _tasks(work)),
        kind=settings.table,
        spec=spec,
        choice=choice,
        topic_schema=topic_schema,
        letters=letters,
        values=values,
        topics=topics,
        checkpoint=work.checkpoint,
        starting={},
        file_bytes_target=settings.file_bytes_target,
        keeper=Keeper(
            [Kept(settings.table, each, _upkeep(settings)) for each in (spec, letters) if each is not None],
            batches_max=settings.upkeep_batches,
        ),
        on_new_topic=options.on_new_topic,
    )


class Beginning(NamedTuple):
    """Where each partition goes on: where the table ends, or at the earliest record of what it has not heard of."""

    starting: Offsets
    found: Offsets
    """The same, with the offset that the earliest record has at this moment."""
    topic_ids: TopicIds


def _beginning(options: SourceOptions, landing: Landing) -> Beginning:
    with Brokers(options) as brokers:
        partitions, topic_ids = (
            brokers.look()
        )  # first, so that no table is made for a topic that is not there
        landing.settle()
        table = open_table(landing.kind, landing.spec)
        known = table.topic_ids(topic_ids)
        names = made_anew(known, topic_ids)
        if names and landing.on_new_topic == "refuse":
            name = names[0]
            raise DataLost(said_of_archive(landing.spec.address, name, known[name], topic_ids[name]))
        left_out = {name: known[name] for name in names if landing.on_new_topic == "leave_out"}
        # What is left out stays where the former topic was read to, so that the query knows the one that is there for another.
        topic_ids |= left_out
        stored = stored_of(table, partitions, topic_ids)
        stored = {**{each: 0 for each in partitions if each.topic in left_out}, **stored}
        if not stored and not names and options.starting != AtOffsets(EARLIEST):
            stored = brokers.resolve(options.starting, partitions, is_start=True)
            table.commit(Commit((), stored, {"begins": json.dumps(to_json(stored))}, topic_ids))
        found = {**brokers.resolve(AtOffsets(EARLIEST), partitions, is_start=True), **stored}
    return Beginning({each: stored.get(each, EARLIEST) for each in partitions}, found, topic_ids)


def _from(work: Work, options: SourceOptions, beginning: Beginning) -> Work:
    """The same work from there on. Spark asks for it only where it has no checkpoint."""
    source = {name: value for name, value in work.source.items() if not name.lower().startswith("starting")}
    batch_bytes = _settings(work).batch_bytes
    is_first = all(offset == EARLIEST for offset in beginning.starting.values())
    said = "earliest" if is_first else json.dumps(to_json(beginning.starting, beginning.topic_ids))
    anew = {"onNewTopic": "append"} if options.takes_new_topics else {}
    bound = (
        {} if options.bytes_per_trigger_max or not batch_bytes else {"maxBytesPerTrigger": str(batch_bytes)}
    )
    return structs.replace(work, source={**source, **anew, **bound, "startingOffsets": said})


def _tasks(work: Work) -> int:
    if is_remote(work.spark):
        return TASKS_UNKNOWN
    return TASKS_PER_CORE * work.spark.sparkContext.defaultParallelism


def _spec(settings: ArchiveSettings, owner: str, *, several_topics: bool, with_topic_id: bool) -> TableSpec:
    return TableSpec(
        address=as_written(absolute(settings.to)),
        owner=owner,
        schema=raw_schema(settings.partition_by, with_topic_id=with_topic_id),
        partition_columns=partition_columns(settings.partition_by, several_topics=several_topics),
        keep_hours=settings.keep_snapshots_hours,
        catalog=settings.catalog,
    )


def _letters(settings: ArchiveSettings, spec: TableSpec) -> TableSpec:
    """Beside the table, laid out like it."""
    catalog = dict(spec.catalog)
    if "table" in catalog:
        catalog["table"] += LETTERS
    return structs.replace(
        spec,
        address=as_written(absolute(settings.dead_letters or settings.to.rstrip("/") + LETTERS)),
        schema=dead_letter_schema(spec.schema),
        catalog=catalog,
    )


def _upkeep(settings: ArchiveSettings) -> Upkeep:
    return Upkeep(
        compact_at=settings.compact_small_files,
        file_bytes_target=settings.file_bytes_target,
        keep_hours=settings.keep_snapshots_hours,
        keep_states=settings.keep_snapshots,
        keep_rows_days=settings.keep_rows_days,
    )


def _settings(work: Work) -> ArchiveSettings:
    assert isinstance(work.settings, ArchiveSettings)
    return work.settings
