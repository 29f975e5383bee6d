"""`archive` and `transform` for programs that have a Spark session: a call starts the job and returns its query.

    from ropewalk.spark import archive

    archive(spark, bootstrap="127.0.0.1:9092", topics="orders", to="/data/lake", once=True).awaitTermination()

What a reader could get wrong
    A job is what it is on the command line: the same settings, defaults, refusals and checkpoint, so that either goes on where the other ended.
    The session is the caller's and stays as it is. So are watching the query and stopping it: no status is kept, and nobody stops a second run.
    What is logged goes to stderr, unless the program has said where to: stdout is its own.
    Upkeep of tables runs beside batches; the last look that a bounded run on the command line takes after its end is left out.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import structlog

from ropewalk.spark.pipelines.catalogue import pipeline
from ropewalk.spark.pipelines.definition import Job, Table, define
from ropewalk.spark.pipelines.running import check_storage, work_of
from ropewalk.spark.pipelines.session import refuse_speculation
from ropewalk.spark.pipelines.status import default_directory
from ropewalk.spark.refusals import WrongUse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def archive(
    spark: "SparkSession",
    *,
    to: str | os.PathLike[str],
    topics: str | Iterable[str] = (),
    pattern: str | None = None,
    bootstrap: str | None = None,
    name: str = "archive",
    once: bool = False,
    interval: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    source: Mapping[str, str | int | bool] | None = None,
    storage: Mapping[str, object] | None = None,
    **settings: object,
) -> "StreamingQuery":
    """Topics to a table of the lake, each record exactly once; `settings` as `pipeline describe archive` lists them."""
    table = Table(
        kind="archive",
        bootstrap=bootstrap,
        topics=_names(topics),
        pattern=pattern,
        source=dict(source or {}),
        checkpoint=None if checkpoint is None else os.fspath(checkpoint),
        once=once,
        interval=interval,
        settings={"to": os.fspath(to), **settings},
        storage=dict(storage or {}),
    )
    return _start(spark, _job(name, table))


def transform(
    spark: "SparkSession",
    *,
    sql: str,
    name: str | None = None,
    topics: str | Iterable[str] = (),
    pattern: str | None = None,
    bootstrap: str | None = None,
    once: bool = False,
    interval: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    source: Mapping[str, str | int | bool] | None = None,
    storage: Mapping[str, object] | None = None,
    **settings: object,
) -> "StreamingQuery":
    """SQL over topics, its rows to a topic (`to_topic`) or a table (`to`), exactly once; `settings` as `pipeline describe transform` lists
    them. A job that writes to a topic must have a name: its transactions and markers are told apart from others' by it."""
    if name is None and settings.get("to_topic"):
        raise WrongUse("say name=…: what a job writes to a topic is known by it, on every machine")
    to = settings.get("to")
    if isinstance(to, os.PathLike):
        settings["to"] = os.fspath(to)
    table = Table(
        kind="transform",
        bootstrap=bootstrap,
        topics=_names(topics),
        pattern=pattern,
        source=dict(source or {}),
        checkpoint=None if checkpoint is None else os.fspath(checkpoint),
        once=once,
        interval=interval,
        settings={"sql": sql, **settings},
        storage=dict(storage or {}),
    )
    return _start(spark, _job(name or "transform", table))


def _names(topics: str | Iterable[str]) -> list[str]:
    return [topics] if isinstance(topics, str) else list(topics)


def _job(name: str, table: Table) -> Job:
    return define(
        name,
        {name: table},
        Table(),
        settings_of=lambda kind: pipeline(kind).Settings,
        bootstrap=os.environ.get("ROPEWALK_BOOTSTRAP"),
        state=default_directory(os.environ),
        environment=os.environ,
    )


def _start(spark: "SparkSession", job: Job) -> "StreamingQuery":
    refuse_speculation(spark.conf.get("spark.speculation", "false") or "false")
    check_storage(job)
    if not structlog.is_configured():
        # stdout is the program's; its stderr may be another one by the time something is said.
        structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    return pipeline(job.kind).start(work_of(job, spark, sink=None)).query
