"""Topics → a table of the lake, each record exactly once, from the first record there is.

What a reader could get wrong
    Where to go on is kept in the table, with the rows. Spark's checkpoint only saves the work of looking there: if it is lost, the
    job goes on where the table ends; if it is ahead of the table, the job stops before it leaves records out.
    Where a job begins that is not to begin at the earliest record is written into the table before the first batch: brokers would
    give another answer to the same question later.
"""

import json
from typing import TYPE_CHECKING, ClassVar

import structlog
from msgspec import Struct, structs

from ropewalk.spark.brokers import Brokers
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.landing import Landing
from ropewalk.spark.lake.shaping import PartitionBy, partition_columns, raw_schema
from ropewalk.spark.lake.table import Commit, TableSpec, Upkeep
from ropewalk.spark.options import EARLIEST, AtOffsets, SourceOptions, parse_source
from ropewalk.spark.pipelines.definition import absolute
from ropewalk.spark.pipelines.pipeline import Work
from ropewalk.spark.ranges import Offsets, to_json

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_log = structlog.get_logger()


class ArchiveSettings(Struct, frozen=True, kw_only=True):
    to: str
    """The table: a directory, or its address in an object store."""
    table: Kind = "delta"
    """What kind of table: delta, or parquet for plain directories."""
    partition_by: PartitionBy = "date"
    """A directory for each date of records' timestamps, for each hour, or none. Several topics have one each above."""
    file_bytes_target: int = 128 << 20
    """A file is ended when it is as large, and smaller ones are joined up to it."""
    compact_small_files: int = 8
    """So many files below half of the target in one directory are joined; 0 for never. Delta only."""
    keep_snapshots_hours: int = 168
    """How long earlier states of the table can be read, and files that nobody needs are kept."""
    upkeep_batches: int = 100
    """So many batches from one upkeep to the next while it runs; after a bounded run there is always one. 0 for never."""

    def __post_init__(self) -> None:
        for name, least in (
            ("file_bytes_target", 1 << 10),
            ("compact_small_files", 0),
            ("keep_snapshots_hours", 0),
            ("upkeep_batches", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, must be at least {least}")


class Archive:
    summary: ClassVar[str] = "Topics to a table of the lake, each record exactly once."
    Settings: ClassVar[type[Struct]] = ArchiveSettings

    @staticmethod
    def start(work: Work) -> "StreamingQuery":
        options = parse_source({"bootstrap": work.bootstrap, **work.source}, streaming=True)
        spec = _spec(work, options)
        starting = _starting(options, _settings(work).table, spec)
        landing = Landing(
            kind=_settings(work).table,
            spec=spec,
            checkpoint=work.checkpoint,
            starting=to_json(starting),
            upkeep=_upkeep(work),
            upkeep_batches=_settings(work).upkeep_batches,
        )
        return work.writing(_from(work, starting).stream(includeHeaders="true")).foreachBatch(landing).start()

    @staticmethod
    def finish(work: Work) -> None:
        options = parse_source({"bootstrap": work.bootstrap, **work.source}, streaming=True)
        table = open_table(_settings(work).table, _spec(work, options))
        _log.info("table maintained", table=_settings(work).to, what=table.maintain(_upkeep(work)))


def _starting(options: SourceOptions, kind: Kind, spec: TableSpec) -> Offsets:
    """Where each partition goes on: where the table ends, or at the earliest record of what it has not heard of."""
    with Brokers(options) as brokers:
        partitions = brokers.partitions()  # first, so that no table is made for a topic that is not there
        table = open_table(kind, spec)
        stored = table.next_offsets(partitions)
        if not stored and options.starting != AtOffsets(EARLIEST):
            stored = brokers.resolve(options.starting, partitions, is_start=True)
            table.commit(Commit((), stored, {"begins": json.dumps(to_json(stored))}))
    return {each: stored.get(each, EARLIEST) for each in partitions}


def _from(work: Work, starting: Offsets) -> Work:
    """The same work from there on. Spark asks for it only where it has no checkpoint."""
    source = {name: value for name, value in work.source.items() if not name.lower().startswith("starting")}
    is_first = all(offset == EARLIEST for offset in starting.values())
    said = "earliest" if is_first else json.dumps(to_json(starting))
    return structs.replace(work, source={**source, "startingOffsets": said})


def _spec(work: Work, options: SourceOptions) -> TableSpec:
    settings = _settings(work)
    subscription = options.subscription
    topics = {*subscription.topics, *(each.topic for each in subscription.assigned)}
    several_topics = subscription.pattern is not None or len(topics) > 1
    return TableSpec(
        address=absolute(settings.to),
        owner=work.name,
        schema=raw_schema(settings.partition_by),
        partition_columns=partition_columns(settings.partition_by, several_topics=several_topics),
        keep_hours=settings.keep_snapshots_hours,
    )


def _upkeep(work: Work) -> Upkeep:
    settings = _settings(work)
    return Upkeep(
        compact_at=settings.compact_small_files,
        file_bytes_target=settings.file_bytes_target,
        keep_hours=settings.keep_snapshots_hours,
    )


def _settings(work: Work) -> ArchiveSettings:
    assert isinstance(work.settings, ArchiveSettings)
    return work.settings
