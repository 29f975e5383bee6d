"""What a monitoring system is told of a job: a file or an endpoint in Prometheus' text format."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from ropewalk.base.metrics import Kind, Metric
from ropewalk.spark.pipelines.progress import Snapshot
from ropewalk.spark.refusals import WrongUse

_JOB: Final = ("pipeline", "kind")
UP: Final = Metric(
    "ropewalk_pipeline_up", Kind.GAUGE, "1 while the job runs, 0 when it has ended or failed.", _JOB
)
ROWS: Final = Metric("ropewalk_pipeline_rows_total", Kind.COUNTER, "Rows read since this run began.", _JOB)
BATCHES: Final = Metric(
    "ropewalk_pipeline_batches_total", Kind.COUNTER, "Batches since this run began.", _JOB
)
BATCH_SECONDS: Final = Metric(
    "ropewalk_pipeline_batch_seconds_total", Kind.COUNTER, "Time spent in batches since this run began.", _JOB
)
LAST_SECONDS: Final = Metric(
    "ropewalk_pipeline_last_batch_seconds", Kind.GAUGE, "How long the last batch took.", _JOB
)
LAST_ROWS: Final = Metric("ropewalk_pipeline_last_batch_rows", Kind.GAUGE, "Rows of the last batch.", _JOB)
LAST_BATCH: Final = Metric(
    "ropewalk_pipeline_last_batch",
    Kind.GAUGE,
    "The number of the last batch, from the job's first run on.",
    _JOB,
)
LAG: Final = Metric(
    "ropewalk_pipeline_lag",
    Kind.GAUGE,
    "Records of the partition that were there and not read when the last batch was made.",
    (*_JOB, "topic", "partition"),
)
WRITTEN_ROWS: Final = Metric(
    "ropewalk_pipeline_written_rows_total",
    Kind.COUNTER,
    "Rows written to the output since this run began.",
    _JOB,
)
WRITTEN_BYTES: Final = Metric(
    "ropewalk_pipeline_written_bytes_total",
    Kind.COUNTER,
    "Bytes of the files, or of the records' keys and values, written since this run began.",
    _JOB,
)
WRITTEN_FILES: Final = Metric(
    "ropewalk_pipeline_written_files_total", Kind.COUNTER, "Files written since this run began.", _JOB
)
DEAD_LETTERS: Final = Metric(
    "ropewalk_pipeline_dead_letters_total",
    Kind.COUNTER,
    "Rows written to the table of dead letters since this run began.",
    _JOB,
)
UNREADABLE: Final = Metric(
    "ropewalk_pipeline_unreadable_rows_total",
    Kind.COUNTER,
    "Rows that could not be read since this run began, whatever became of them.",
    _JOB,
)
LATE: Final = Metric(
    "ropewalk_pipeline_late_rows_total",
    Kind.COUNTER,
    "Rows since this run began that came too late to be counted.",
    _JOB,
)
STATE: Final = Metric(
    "ropewalk_pipeline_state_rows", Kind.GAUGE, "Rows that the query keeps for batches to come.", _JOB
)
METRICS: Final = (
    UP,
    ROWS,
    BATCHES,
    BATCH_SECONDS,
    LAST_SECONDS,
    LAST_ROWS,
    LAST_BATCH,
    LAG,
    WRITTEN_ROWS,
    WRITTEN_BYTES,
    WRITTEN_FILES,
    DEAD_LETTERS,
    UNREADABLE,
    LATE,
    STATE,
)


def page(name: str, kind: str, snapshot: Snapshot, *, up: bool) -> str:
    values: dict[Metric, list[tuple[tuple[str, ...], float]]] = {
        UP: [((), 1 if up else 0)],
        ROWS: [((), snapshot.rows)],
        BATCHES: [((), snapshot.batches)],
        BATCH_SECONDS: [((), snapshot.busy_seconds)],
        LAST_SECONDS: [((), snapshot.batch_seconds)] if snapshot.batches else [],
        LAST_ROWS: [((), snapshot.batch_rows)] if snapshot.batches else [],
        LAST_BATCH: [((), snapshot.batch)] if snapshot.batch is not None else [],
        LAG: [((each.topic, str(each.partition)), each.lag) for each in snapshot.lags],
        WRITTEN_ROWS: _if_known(snapshot.written_rows),
        WRITTEN_BYTES: _if_known(snapshot.written_bytes),
        WRITTEN_FILES: _if_known(snapshot.written_files),
        DEAD_LETTERS: _if_known(snapshot.dead_letters),
        UNREADABLE: _if_known(snapshot.unreadable_rows),
        LATE: [((), snapshot.late_rows)],
        STATE: _if_known(snapshot.state_rows),
    }
    return "".join(line for metric in METRICS for line in _lines(metric, (name, kind), values[metric]))


def write_page(path: str, text: str) -> None:
    """In one step, so that nobody reads half of it. Raises `WrongUse` where that cannot be."""
    beside = f"{path}.writing"
    try:
        with open(beside, "w") as file:
            file.write(text)
        os.replace(beside, path)
    except OSError as error:
        raise WrongUse(
            f"metrics cannot be kept in {path} ({error.strerror}); choose another --metrics"
        ) from None


@contextlib.contextmanager
def serving(port: int, text: Callable[[], str]) -> Iterator[int]:
    """Serves what `text` answers, on the loopback; the port that was taken, for those who asked for any."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name for it
            found = self.path.partition("?")[0] in ("/", "/metrics")
            body = text().encode() if found else b"metrics are at /metrics\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Who asks for metrics is not worth a line each time."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Page)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "ports end at 65535"
        raise WrongUse(
            f"metrics cannot be served on port {port} ({why}); choose another --metrics-port"
        ) from None
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _lines(
    metric: Metric, job: tuple[str, str], values: list[tuple[tuple[str, ...], float]]
) -> Iterator[str]:
    if not values:
        return
    yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind.value}\n"
    for labels, value in values:
        pairs = zip(metric.labels, (*job, *labels), strict=True)
        written = ",".join(f'{label}="{_escaped(text)}"' for label, text in pairs)
        yield (
            f"{metric.name}{{{written}}} {value:g}\n"
            if value != int(value)
            else f"{metric.name}{{{written}}} {int(value)}\n"
        )


def _if_known(value: int | None) -> list[tuple[tuple[str, ...], float]]:
    return [] if value is None else [((), value)]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
