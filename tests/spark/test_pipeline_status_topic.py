"""How jobs are, told by the cluster: records that are bounded, read anywhere, and never in a job's way."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

pytest.importorskip("pyspark")

import structlog
from confluent_kafka import Producer
from msgspec.structs import replace

from ropewalk.base.limits import (
    PIPELINE_ERROR_CHARACTERS_MAX,
    PIPELINE_SILENT_MS_MAX,
    PIPELINE_STATUS_BYTES_MAX,
)
from ropewalk.metadata.internal_topics import PIPELINES_TOPIC
from ropewalk.spark.__main__ import main
from ropewalk.spark.pipelines.progress import PartitionLag, Snapshot
from ropewalk.spark.pipelines.status import State, Status, write_status
from ropewalk.spark.pipelines.status_topic import (
    TOPIC,
    StatusTopic,
    heard_of,
    read_topic,
    records_of,
    statuses_in,
    together,
)
from ropewalk.spark.refusals import WrongUse
from ropewalk.testing import Cluster
from tests.spark.conftest import Node
from tests.spark.test_pipeline_start import nobody
from tests.spark.test_pipeline_watching import a_status

__all__ = ["nobody"]  # the fixture

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


@pytest.fixture
def alone() -> Iterator[Cluster]:
    """No other test's jobs are in it."""
    with Cluster() as cluster:
        yield cluster


def test_the_name_is_the_one_that_the_cluster_knows() -> None:
    assert TOPIC == PIPELINES_TOPIC


def test_a_job_is_seen_from_elsewhere_with_its_figures_and_its_last_error(alone: Cluster) -> None:
    assert read_topic(alone.bootstrap, datetime.now(UTC)) == []
    with StatusTopic(alone.bootstrap) as topic:
        topic.put(replace(a_status(State.FAILED), error="the table says no: do this"))
    with StatusTopic(alone.bootstrap) as topic:
        topic.put(replace(a_status(), progress=Snapshot(rows=9, written_rows=7, late_rows=2)))
    (found,) = read_topic(alone.bootstrap, datetime.now(UTC))
    assert (found.state, found.error, found.last_error) == (State.RUNNING, None, "the table says no: do this")
    assert (found.progress.rows, found.progress.written_rows, found.progress.late_rows) == (9, 7, 2)
    assert found.host
    assert found.heard_at
    # What is nobody's status does not keep others from being read.
    producer = Producer({"bootstrap.servers": alone.bootstrap})
    for key, value in ((b"x", b"{"), (b"y/error", None), (None, b"z"), (b"\xff", b"z")):
        producer.produce(TOPIC, value, key=key)
    assert producer.flush(30) == 0
    assert [each.name for each in read_topic(alone.bootstrap, datetime.now(UTC))] == ["orders"]


def test_a_record_is_bounded_whatever_a_job_has_to_tell() -> None:
    lags = tuple(PartitionLag("a-topic-with-some-name", index, 10**6) for index in range(5000))
    status = replace(a_status(State.FAILED), error="x" * 10**6, progress=Snapshot(lag=5, lags=lags))
    for _, value in records_of(status, NOW):
        assert len(value) <= PIPELINE_STATUS_BYTES_MAX
    (found,) = statuses_in(records_of(status, NOW), NOW)
    assert (found.progress.lag, found.progress.lags) == (5, ())
    assert found.last_error == "x" * PIPELINE_ERROR_CHARACTERS_MAX
    few = replace(status, error=None, progress=Snapshot(lag=5, lags=lags[:20]))
    (found,) = statuses_in(records_of(few, NOW), NOW)
    assert found.progress.lags == lags[:20]


@pytest.mark.parametrize("state", [each for each in State if each is not State.DIED])
@pytest.mark.parametrize("silent_ms", [0, PIPELINE_SILENT_MS_MAX, PIPELINE_SILENT_MS_MAX + 1])
def test_who_is_silent_for_long_has_died_if_it_was_at_work(state: State, silent_ms: int) -> None:
    (found,) = statuses_in(records_of(a_status(state), NOW), NOW + timedelta(milliseconds=silent_ms))
    died = state in (State.STARTING, State.RUNNING) and silent_ms > PIPELINE_SILENT_MS_MAX
    assert found.state is (State.DIED if died else state)


def test_of_a_job_the_newest_that_is_known_is_told() -> None:
    here, there = a_status(State.DIED), a_status(State.RUNNING)
    later = replace(there, started_at="2026-11-17T00:00:00+00:00", last_error="no")
    assert together([here], [there]) == [here]  # the same run: the lock is better than silence
    assert together([here], [later]) == [later]
    assert together([replace(here, started_at="2026-11-18T00:00:00+00:00")], [later])[0].last_error == "no"
    other = a_status(name="returns")
    assert [each.name for each in together([other], [there])] == ["orders", "returns"]


def test_brokers_that_do_not_answer_are_one_warning_and_stop_nobody(nobody: int) -> None:
    address = f"127.0.0.1:{nobody}"
    with structlog.testing.capture_logs() as logs:
        topic = StatusTopic(address)
        for _ in range(3):
            topic.write(a_status())
    assert [each["log_level"] for each in logs if each["log_level"] == "warning"] == ["warning"]
    with pytest.raises(WrongUse, match="without --bootstrap the jobs of this machine"):
        heard_of(address, NOW)


def test_the_command_tells_of_jobs_of_other_machines(
    node: Node,
    nobody: int,
    tmp_path: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with StatusTopic(node.bootstrap) as topic:
        topic.put(replace(a_status(State.ENDED, "far"), host="elsewhere"))
    write_status(str(tmp_path), a_status(State.ENDED, "near"))
    state = ["--state", str(tmp_path), "--json"]

    def told(*words: str) -> list[str]:
        assert main(["status", *state, *words]) == 0
        found = msgspec.json.decode(capsys.readouterr().out, type=list[Status])
        return [each.name for each in found]

    assert told() == ["near"]
    assert {"far", "near"} <= set(told("--bootstrap", node.bootstrap))
    assert told("far", "-b", node.bootstrap) == ["far"]
    monkeypatch.setenv("ROPEWALK_BOOTSTRAP", node.bootstrap)
    assert "far" in told()
    monkeypatch.setenv("ROPEWALK_BOOTSTRAP", f"127.0.0.1:{nobody}")
    assert told() == ["near"]
    assert main(["status", "-b", f"127.0.0.1:{nobody}"]) == 2
    monkeypatch.delenv("ROPEWALK_BOOTSTRAP")
    assert main(["status", "far", *state]) == 2
    assert "--bootstrap a cluster that may have heard of it" in capsys.readouterr().err
