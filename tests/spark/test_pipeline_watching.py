"""What is told of a job: progress, metrics, status and the words of failures, without Spark."""

import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.figures import Figures, Tally
from ropewalk.spark.pipelines.causes import cause_of
from ropewalk.spark.pipelines.metrics import METRICS, page, serving, write_page
from ropewalk.spark.pipelines.progress import PartitionLag, Progress, Snapshot
from ropewalk.spark.pipelines.showing import last_batch, so_far, summary
from ropewalk.spark.pipelines.status import (
    State,
    Status,
    as_found,
    default_directory,
    held,
    read_statuses,
    write_status,
)
from ropewalk.spark.refusals import WrongUse

# As Spark 4.2 reports them of a query with maxOffsetsPerTrigger=15, shortened.
FIRST = {
    "timestamp": "2026-11-16T10:59:40.090Z",
    "batchId": 0,
    "batchDuration": 50079,
    "numInputRows": 15,
    "durationMs": {"addBatch": 49133, "latestOffset": 24, "triggerExecution": 50000},
    "sources": [
        {
            "description": "PythonMicroBatchStreamWithTriggerAvailableNow",
            "startOffset": None,
            "endOffset": {"t": {"0": 8, "1": 7}},
            "latestOffset": {"t": {"0": 20, "1": 20}},
            "numInputRows": 15,
        }
    ],
}
SECOND = {
    "timestamp": "2026-11-16T11:00:32.511Z",
    "batchId": 1,
    "batchDuration": 2000,
    "numInputRows": 25,
    "durationMs": {"addBatch": 773, "triggerExecution": 2000},
    "sources": [
        {
            "startOffset": {"t": {"0": 8, "1": 7}},
            "endOffset": {"t": {"0": 20, "1": 20}},
            "latestOffset": {"t": {"0": 20, "1": 20}},
        }
    ],
}
THIRD = {
    **SECOND,
    "timestamp": "2026-11-16T11:00:34.511Z",
    "batchId": 2,
    "sources": [
        {
            "startOffset": '{"t": {"0": 20, "1": 20}}',
            "endOffset": '{"t": {"0": 20, "1": 20, "2": 4}}',
            "latestOffset": {"t": {"0": 20, "1": 20, "2": 4}},
        }
    ],
}
IDLE: dict[str, Any] = {
    "timestamp": "2026-11-16T11:00:42.511Z",
    "batchId": 2,
    "numInputRows": 0,
    "durationMs": {"latestOffset": 5, "triggerExecution": 5},
    "sources": [
        {"endOffset": {"t": {"0": 20, "1": 20}}, "latestOffset": {"t": {"0": 21, "1": 20}, "u": {"0": 4}}}
    ],
}


def test_what_a_connect_server_reports_comes_to_the_same() -> None:
    """It leaves out the sum of rows; offsets are text where Spark did not take them apart."""
    remote: dict[str, Any] = {name: value for name, value in FIRST.items() if name != "numInputRows"}
    remote["sources"] = [
        {
            "endOffset": '{"t": {"0": 8, "1": 7}}',
            "latestOffset": '{"t": {"0": 20, "1": 20}}',
            "numInputRows": 15,
        },
        {"endOffset": "7", "latestOffset": "not told", "numInputRows": 0},
    ]
    here, there = Progress(), Progress()
    assert here.take([FIRST]) == there.take([remote])


def test_batches_add_up_and_are_counted_once() -> None:
    progress = Progress()
    assert [each.batch for each in progress.take([FIRST])] == [0]
    first = progress.snapshot
    assert (first.rows, first.batches, first.lag, first.rows_per_second) == (15, 1, 25, 0.3)
    assert first.lags == (PartitionLag("t", 0, 12), PartitionLag("t", 1, 13))
    assert [each.batch for each in progress.take([FIRST, SECOND])] == [1]
    assert progress.take([FIRST, SECOND]) == []
    second = progress.snapshot
    assert (second.rows, second.batches, second.batch, second.lag) == (40, 2, 1, 0)
    assert (second.batch_rows, second.batch_seconds, second.busy_seconds) == (25, 2.0, 52.0)


def test_offsets_are_counted_where_nobody_sees_rows() -> None:
    unseen = [{**each, "numInputRows": 0} for each in (FIRST, SECOND, THIRD)]
    progress = Progress({TopicPartition("t", 0): 3, TopicPartition("t", 1): 0}, reads_by_itself=True)
    assert [each.batch_rows for each in progress.take(unseen)] == [5 + 7, 12 + 13, 4]
    assert progress.snapshot.rows == 41
    assert progress.snapshot.written_rows is None
    assert [each.batch_rows for each in Progress({}, reads_by_itself=True).take(unseen)] == [15, 25, 4]


def test_what_tasks_have_counted_is_told_and_a_batch_that_was_there_already_is_nothing() -> None:
    unseen = [{**each, "numInputRows": 0} for each in (FIRST, SECOND)]
    tally = Tally()
    progress = Progress({}, tally, reads_by_itself=True)
    tally.add(0, Figures())
    tally.add(1, Figures(read_rows=24, written_rows=22, written_files=2, written_bytes=9, dead_letters=2))
    assert [each.batch_rows for each in progress.take(unseen)] == [0, 24]
    told = progress.snapshot
    assert (told.rows, told.written_rows, told.written_files, told.dead_letters) == (24, 22, 2, 2)
    # Written before Spark knows that the batch is over, and perhaps it never will.
    tally.add(2, Figures(written_rows=7))
    assert (progress.snapshot.written_rows, progress.snapshot.rows) == (29, 24)


def test_rows_that_spark_looks_at_twice_are_read_once() -> None:
    reports: list[Any] = [FIRST, SECOND]
    twice = [{**each, "numInputRows": 2 * each["numInputRows"]} for each in reports]
    assert [each.batch_rows for each in Progress({}).take(twice)] == [15, 25]
    both = {**FIRST, "sources": reports[0]["sources"] * 2, "numInputRows": 30}
    assert [each.batch_rows for each in Progress({}).take([both])] == [15]


def test_late_rows_are_spark_s_unless_they_are_counted_and_state_is_of_the_last_batch() -> None:
    reports: Any = [
        {**FIRST, "stateOperators": [{"numRowsTotal": 5, "numRowsDroppedByWatermark": 1}]},
        {
            **SECOND,
            "stateOperators": [{"numRowsTotal": 4, "numRowsDroppedByWatermark": 2}, {"numRowsTotal": 3}],
        },
    ]
    by_spark = Progress()
    by_spark.take(reports)
    assert (by_spark.snapshot.late_rows, by_spark.snapshot.state_rows) == (3, 7)
    tally = Tally()
    tally.add(1, Figures(late_rows=8))
    counted = Progress({}, tally, counts_late_rows=True)
    counted.take(reports)
    assert counted.snapshot.late_rows == 8
    without_state = Progress()
    without_state.take([FIRST])
    assert without_state.snapshot.state_rows is None


def test_a_look_that_found_nothing_is_no_batch_but_tells_the_lag() -> None:
    progress = Progress()
    assert progress.take([FIRST, SECOND, IDLE]) != []
    assert (progress.snapshot.batches, progress.snapshot.batch, progress.snapshot.lag) == (2, 1, 5)
    assert progress.snapshot.lags[-1] == PartitionLag("u", 0, 4)


def test_other_sources_have_no_lag_and_do_no_harm() -> None:
    rate = {**FIRST, "sources": [{"endOffset": 5, "latestOffset": None}, {"startOffset": None}]}
    progress = Progress()
    progress.take([rate])
    assert (progress.snapshot.lag, progress.snapshot.lags) == (None, ())


def test_lines_for_people() -> None:
    progress = Progress()
    assert so_far(progress.snapshot) == "no batch yet"
    (first,) = progress.take([FIRST])
    assert last_batch(first) == "batch 0: 15 rows in 50.0 s (0 rows/s), lag 25"
    progress.take([SECOND])
    assert so_far(progress.snapshot) == "batch 1, 40 rows, 12 rows/s, lag 0"
    assert summary(progress.snapshot, 61.26) == "40 rows read in 2 batches, 61.3 s (1 rows/s in batches)"
    assert summary(Snapshot(), 2) == "0 rows read in 0 batches, 2.0 s"
    assert (
        summary(Snapshot(batches=1, rows=9, written_rows=0), 2) == "9 rows read, 0 written in 1 batch, 2.0 s"
    )
    bad = Snapshot(batches=1, rows=9, written_rows=5, dead_letters=1, unreadable_rows=1, late_rows=3)
    assert summary(bad, 2) == "9 rows read, 5 written, 1 dead letter, 3 too late in 1 batch, 2.0 s"
    kept = Snapshot(batches=1, rows=9, written_rows=9, dead_letters=0, unreadable_rows=2)
    assert summary(kept, 2) == "9 rows read, 9 written, 2 unreadable in 1 batch, 2.0 s"


def test_metrics_are_what_prometheus_reads(tmp_path: Path) -> None:
    tally = Tally()
    tally.add(0, Figures(written_rows=14, dead_letters=1, unreadable_rows=1))
    progress = Progress({}, tally)
    progress.take([{**FIRST, "stateOperators": [{"numRowsTotal": 5}]}])
    text = page('or"ders', "archive", progress.snapshot, up=True)
    samples = {
        (sample.name, sample.labels.get("partition")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels["pipeline"] == 'or"ders'
    }
    assert samples["ropewalk_pipeline_rows_total", None] == 15
    assert samples["ropewalk_pipeline_batch_seconds_total", None] == 50
    assert samples["ropewalk_pipeline_lag", "1"] == 13
    assert samples["ropewalk_pipeline_up", None] == 1
    assert samples["ropewalk_pipeline_written_rows_total", None] == 14
    assert samples["ropewalk_pipeline_dead_letters_total", None] == 1
    assert samples["ropewalk_pipeline_late_rows_total", None] == 0
    assert samples["ropewalk_pipeline_state_rows", None] == 5
    assert {name for name, _ in samples} == {metric.name for metric in METRICS}
    path = tmp_path / "metrics.prom"
    write_page(str(path), text)
    assert path.read_text() == text
    assert os.listdir(tmp_path) == ["metrics.prom"]


def test_metrics_are_served_on_the_loopback() -> None:
    with serving(0, lambda: "a 1\n") as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.read() == b"a 1\n"
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other")
        for taken in (port, 99_999):
            with pytest.raises(WrongUse, match="choose another --metrics-port"), serving(taken, str):
                pass


def test_metrics_that_cannot_be_kept_are_told(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"cannot be kept in .*No such file or directory.*another --metrics"):
        write_page(str(tmp_path / "none" / "metrics.prom"), "a 1\n")


def a_status(state: State = State.RUNNING, name: str = "orders") -> Status:
    return Status(
        name=name,
        kind="archive",
        state=state,
        pid=17,
        started_at="2026-11-16T11:00:00+00:00",
        updated_at="2026-11-16T11:00:01+00:00",
        once=False,
        bootstrap="b:1",
        checkpoint="/c",
        progress=Snapshot(batch=3, lag=4, lags=(PartitionLag("t", 0, 4),)),
    )


def test_a_job_runs_as_long_as_its_name_is_held(tmp_path: Path) -> None:
    directory = str(tmp_path / "made" / "when needed")
    with held(directory, "orders"):
        write_status(directory, a_status())
        assert read_statuses(directory) == [a_status()]
        with pytest.raises(WrongUse, match="orders runs on this machine already"), held(directory, "orders"):
            pass
        with held(directory, "returns"):
            pass
    (found,) = read_statuses(directory, "orders")
    assert found == msgspec.structs.replace(a_status(), state=State.DIED)
    with held(directory, "orders"):
        pass


def test_looking_at_a_job_does_not_keep_it_from_starting(tmp_path: Path) -> None:
    with held(str(tmp_path), "orders"):
        write_status(str(tmp_path), a_status())
    read_statuses(str(tmp_path))
    with held(str(tmp_path), "orders"):
        pass


@pytest.mark.parametrize("state", State)
def test_only_who_was_at_work_can_have_died(state: State) -> None:
    assert as_found(a_status(state), is_held=True).state is state
    expected = State.DIED if state in (State.STARTING, State.RUNNING) else state
    assert as_found(a_status(state), is_held=False).state is expected


def test_what_is_no_status_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(WrongUse, match=r"x\.json is no status of a pipeline"):
        read_statuses(str(tmp_path))
    assert read_statuses(str(tmp_path), "nobody") == []
    (tmp_path / "file").write_text("")
    with pytest.raises(WrongUse, match="choose another with --state"), held(str(tmp_path / "file"), "x"):
        pass


def test_states_are_kept_where_the_system_says() -> None:
    assert default_directory({"XDG_STATE_HOME": "/s"}) == "/s/ropewalk/pipelines"
    assert default_directory({}).endswith("/.local/state/ropewalk/pipelines")


# As Spark 4.2 tells them, shortened.
IN_A_BATCH = """[STREAM_FAILED] Query [id = f9, runId = b9] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "pyspark/sql/utils.py", line 163, in call
    self.func(DataFrame(jdf, wrapped_session_jdf), batch_id)
  File "archive.py", line 39, in write
    raise WrongUse("the table says no: do this")
ropewalk.spark.refusals.WrongUse: the table says no: do this
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = f9, runId = b9]
Current Committed Offsets: {}
"""
IN_A_TASK = """[STREAM_FAILED] Query [id = a1, runId = fe] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "pyspark/errors/exceptions/captured.py", line 257, in deco
    raise converted from None
  File "archive.py", line 43, in mapper
    for b in it: raise WrongUse("the row says no: do that")
    ^^^^^^^^^^^^^^^^^
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "archive.py", line 43, in mapper
    for b in it: raise WrongUse("the row says no: do that")
ropewalk.spark.refusals.WrongUse: the row says no: do that
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
"""
OF_SOMEBODY_ELSE = """[STREAM_FAILED] Query [id = 7f] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred. Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "explore.py", line 46, in <lambda>
    1//0
    ~^^~
ZeroDivisionError: integer division or modulo by zero
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 7f]
"""
MASKED = """[STREAM_FAILED] Query [id = 7f] terminated with exception: Traceback (most recent call last):
  File "pyspark/sql/streaming/python_streaming_source_runner.py", line 257, in main
    reader = _streamReader(data_source, schema)
MemoryError: no room

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "pyspark/sql/streaming/python_streaming_source_runner.py", line 293, in main
    reader.stop()
    ^^^^^^
UnboundLocalError: cannot access local variable 'reader' where it is not associated with a value
 SQLSTATE: XXKST
=== Streaming Query ===
"""
JAVA = """An error occurred while calling o220.start.
: java.io.IOException: mkdir of file:/proc/x/y/_spark_metadata failed
\tat org.apache.hadoop.fs.FileSystem.primitiveMkdir(FileSystem.java:1414)
"""
MASTER = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'lokal'
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3386)
"""
BUSY = """[STREAM_FAILED] Query [id = 7f] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST
=== Streaming Query ===
"""
ANALYSIS = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nosuch` cannot be resolved. Did you mean one of the following? [`topic`, `key`]. SQLSTATE: 42703; line 1 pos 0;
'Project ['nosuch]
+- ~StreamingRelationV2 PythonDataSourceV2@504e419, ropewalk
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (IN_A_BATCH, "the table says no: do this"),
        (IN_A_TASK, "the row says no: do that"),
        (OF_SOMEBODY_ELSE, "ZeroDivisionError: integer division or modulo by zero"),
        (MASKED, "MemoryError: no room"),
        (
            MASKED.replace(": no room", ""),
            "the source's reader was stopped while Spark was making it. Nothing is lost; start the job again",
        ),
        (JAVA, "IOException: mkdir of file:/proc/x/y/_spark_metadata failed"),
        (MASTER, "SparkException: Could not parse Master URL: 'lokal'"),
        (
            ANALYSIS,
            "A column with name `nosuch` cannot be resolved. Did you mean one of the following? [`topic`, `key`]",
        ),
        (
            BUSY,
            "a Python worker of Spark did not start within ten seconds, which Spark does not wait for longer: the machine has too much to do."
            " Nothing is lost; start the job again",
        ),
        ("", "it said nothing"),
        ("plain words: nothing else", "plain words: nothing else"),
    ],
)
def test_the_cause_is_found_in_what_spark_wraps_around_it(text: str, cause: str) -> None:
    assert cause_of(text) == cause
