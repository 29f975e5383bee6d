"""One run of a job, from its definition to its end: checks, session, query, and what is told of it meanwhile.

What a reader could get wrong
    Spark stops a query in the middle of a batch. Asked to stop, a run waits for a moment between two batches; asked twice, it does not.
    A batch that was cut short is done again at the next start; nothing depends on how a run ends.
    Everything that Spark and its Java write to stderr goes to a file, because it would bury the one line that matters.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from ropewalk.spark.brokers import Brokers
from ropewalk.spark.objects import refuse_unfit
from ropewalk.spark.options import parse_source
from ropewalk.spark.pipelines.causes import cause_of
from ropewalk.spark.pipelines.definition import Job
from ropewalk.spark.pipelines.hosts import check_hosts
from ropewalk.spark.pipelines.metrics import page, serving, write_page
from ropewalk.spark.pipelines.pipeline import Pipeline, Started, Work
from ropewalk.spark.pipelines.progress import Progress, Snapshot
from ropewalk.spark.pipelines.session import check_place, hand_storage, is_local, open_session, pages_of
from ropewalk.spark.pipelines.showing import Showing
from ropewalk.spark.pipelines.sink_names import sink_name
from ropewalk.spark.pipelines.status import State, Status, held, write_status
from ropewalk.spark.pipelines.status_topic import StatusTopic
from ropewalk.spark.refusals import PipelineFailed
from ropewalk.spark.security import security_of
from ropewalk.spark.storage import as_written, is_object_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S: Final = 1
"""How often a query is looked at."""


class Watching(Struct, frozen=True, kw_only=True):
    """Who is told of a run, and how."""

    state_directory: str
    metrics_file: str | None = None
    metrics_port: int | None = None
    verbose: bool = False
    quiet: bool = False


class Outcome(Struct, frozen=True):
    state: State
    progress: Snapshot
    seconds: float


class Stop:
    """Whether somebody has asked for the end. Signals are counted; nothing else is done in their handler."""

    def __init__(self) -> None:
        self.asked = 0

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        before = {each: signal.signal(each, self._on_signal) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.asked += 1


def run(job: Job, pipeline: type[Pipeline], watching: Watching) -> Outcome:
    """Raises `WrongUse` for what can be set right by the user, and `PipelineFailed` for what went wrong on the way."""
    check_place(job, os.environ)
    check_topics(job)
    check_storage(job)
    with held(watching.state_directory, job.name), contextlib.ExitStack() as open_:
        log = None if watching.verbose else os.path.join(watching.state_directory, f"{job.name}.log")
        sink = sink_name(watching.state_directory, job.name, is_named=job.is_named)
        heard = open_.enter_context(StatusTopic(job.bootstrap, security_of(job.source)))
        report = Report(job, watching, log, heard)
        if watching.metrics_port is not None:
            open_.enter_context(serving(watching.metrics_port, report.metrics))
        showing = open_.enter_context(Showing(job.name, sys.stdout, quiet=watching.quiet))
        if log is not None:
            open_.enter_context(_stderr_in(log))
        report.tell(State.STARTING)
        try:
            return _run(job, pipeline, report, showing, sink)
        except KeyboardInterrupt:
            report.tell(State.STOPPED)
            raise
        except BaseException as error:
            report.tell(State.FAILED, _words(error))
            raise


def check_topics(job: Job) -> None:
    """Refuses brokers that do not answer and topics that are not there. Behind a Connect server it is not us who must reach them."""
    if job.remote is None:
        with Brokers(parse_source({"bootstrap": job.bootstrap, **job.source}, streaming=True)) as brokers:
            brokers.partitions()


def check_storage(job: Job) -> None:
    """Refuses object stores that are not there, or that two runs could not share."""
    if job.remote is None:
        for name in ("to", "dead_letters"):
            address = getattr(job.settings, name, None)
            if isinstance(address, str) and is_object_store(address):
                refuse_unfit(as_written(address), job.storage)


def _run(job: Job, pipeline: type[Pipeline], report: "Report", showing: Showing, sink: str) -> Outcome:
    began = time.monotonic()
    showing.step(f"starting Spark on {job.remote or job.master}")
    session = open_session(job)
    try:
        hand_storage(job, session)
        pages = pages_of(session)
        if pages is not None:
            report.has_pages(pages)
            showing.step(f"Spark's pages are at {pages}")
        if not is_local(job):
            showing.step("looking at Spark's hosts")
            check_hosts(session)
        state = carry_out(job, pipeline, session, report, showing, sink)
    finally:
        session.stop()
    return Outcome(state, report.snapshot, time.monotonic() - began)


def carry_out(
    job: Job,
    pipeline: type[Pipeline],
    session: "SparkSession",
    report: "Report",
    showing: Showing,
    sink: str | None = None,
) -> State:
    """In a session that is there, and stays."""
    stop = Stop()
    work = work_of(job, session, sink)
    with stop.listening(), _failures_in_words(report.log):
        started = pipeline.start(work)
        report.begin(started)
        showing.step(f"reading from {job.bootstrap}; Ctrl-C stops after the batch in hand")
        stopped = watch(started.query, stop, report, showing)
        if job.once and not stopped:
            showing.step("tidying up")
            pipeline.finish(work)
    state = State.STOPPED if stopped else State.ENDED
    report.tell(state)
    return state


def watch(query: "StreamingQuery", stop: Stop, report: "Report", showing: Showing) -> bool:
    """Until the query ends; whether it was stopped before that. Raises what the query failed with."""
    stopped = False
    batches_when_asked: int | None = None
    while True:
        # What has ended is asked before its last reports are: none can come later.
        ended = query.awaitTermination(_LOOK_S)
        for snapshot in report.take(query):
            showing.batch(snapshot)
        if ended:
            return stopped
        if not stop.asked:
            showing.waiting(report.snapshot)
            continue
        if batches_when_asked is None:
            batches_when_asked = report.snapshot.batches
            showing.step("stopping after the batch in hand; once more to stop at once")
        is_between = not query.status["isTriggerActive"] or report.snapshot.batches > batches_when_asked
        if is_between or stop.asked > 1:
            stopped = True
            query.stop()


class Report:
    """Tells files, endpoints and the cluster of a run."""

    def __init__(
        self, job: Job, watching: Watching, log: str | None, cluster: StatusTopic | None = None
    ) -> None:
        self._job = job
        self._cluster = cluster
        self._watching = watching
        self._progress = Progress()
        self._status = Status(
            name=job.name,
            kind=job.kind,
            state=State.STARTING,
            pid=os.getpid(),
            started_at=_now(),
            updated_at=_now(),
            once=job.once,
            bootstrap=job.bootstrap,
            checkpoint=job.checkpoint,
            log=log,
            host=socket.gethostname(),
        )

    @property
    def log(self) -> str | None:
        return self._status.log

    @property
    def snapshot(self) -> Snapshot:
        return self._progress.snapshot

    def begin(self, started: Started) -> None:
        self._progress = Progress(
            started.counted_from,
            started.tally,
            reads_by_itself=started.reads_by_itself,
            counts_late_rows=started.counts_late_rows,
        )
        self.tell(State.RUNNING)

    def has_pages(self, address: str) -> None:
        self._status = msgspec.structs.replace(self._status, pages=address)
        self.tell(self._status.state)

    def take(self, query: "StreamingQuery") -> list[Snapshot]:
        before = self.snapshot
        ended = self._progress.take(json.loads(each.json) for each in query.recentProgress)
        if self.snapshot != before:
            self.tell(self._status.state)
        return ended

    def tell(self, state: State, error: str | None = None) -> None:
        self._status = msgspec.structs.replace(
            self._status, state=state, error=error, updated_at=_now(), progress=self.snapshot
        )
        write_status(self._watching.state_directory, self._status)
        if self._cluster is not None:
            self._cluster.put(self._status)
        if self._watching.metrics_file is not None:
            write_page(self._watching.metrics_file, self.metrics())

    def metrics(self) -> str:
        up = self._status.state in (State.STARTING, State.RUNNING)
        return page(self._job.name, self._job.kind, self.snapshot, up=up)


def work_of(job: Job, session: "SparkSession", sink: str | None) -> Work:
    return Work(
        spark=session,
        name=job.name,
        bootstrap=job.bootstrap,
        source=job.source,
        checkpoint=job.checkpoint,
        once=job.once,
        interval=job.interval,
        settings=job.settings,
        storage=job.storage,
        sink=sink,
    )


@contextlib.contextmanager
def _failures_in_words(log: str | None) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PipelineFailed(cause_of(str(error)), log) from error
    except OSError as error:
        raise PipelineFailed(cause_of(f"{type(error).__name__}: {error}"), log) from error


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@contextlib.contextmanager
def _stderr_in(path: str) -> Iterator[None]:
    """Also of processes that are started meanwhile, and of what they start."""
    sys.stderr.flush()
    kept = os.dup(2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    os.dup2(log, 2)
    os.close(log)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
