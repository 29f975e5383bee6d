"""Pipelines on Spark under kills: one of each victim. `tests/chaos/run-spark` does as many as one has patience for."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from ropewalk.spark.sink.options import parse_sink
from ropewalk.spark.sink.transaction import write_once
from ropewalk.testing import Cluster
from tests.chaos.spark_job import Checkpoint
from tests.chaos.spark_judge import Place, Record, judge, judge_source
from tests.chaos.spark_pipelines import TARGET, TASK_COUNT, Archive, Scenery, Sink
from tests.chaos.spark_rounds import run
from tests.spark.conftest import Node
from tests.spark.test_spark_sink_tasks import COLUMNS, rows

GIVEN = [Record(Place(partition, offset), f"plain {offset}") for partition in (0, 1) for offset in (0, 1, 3)]


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17 or newer")
def test_each_record_is_archived_once_though_a_driver_a_worker_and_a_broker_are_killed() -> None:
    totals = run(Archive, 1, seed=0, node_count=1)
    assert totals.complaints() == []
    assert totals.kills == {"driver": 1, "executor": 1, "broker": 1}
    assert totals.given > 0


@pytest.mark.compat
@pytest.mark.timeout(120)
def test_a_kill_counts_as_one_after_a_commit_when_a_marker_is_ahead_of_what_spark_knows(
    tmp_path: Path,
) -> None:
    for part in ("offsets", "commits"):
        (tmp_path / part).mkdir()
    (tmp_path / "metadata").write_text('{"id": "q"}')
    (tmp_path / "offsets" / "0").touch()
    with Cluster() as cluster:
        killed = Sink(Scenery(cluster.bootstrap, tmp_path, tmp_path, "local[1]"))
        assert not killed.is_ahead(Checkpoint(tmp_path)), "nothing was ever marked"
        Node(cluster.bootstrap).create(TARGET)
        given = {"bootstrap": cluster.bootstrap, "topic": TARGET, "exactlyOnce": "true", "name": killed.name}
        options = parse_sink({**given, "tasks": str(TASK_COUNT)}, streaming=True)
        write_once(options, COLUMNS, iter([rows(1)]), task=1, query="q", batch=0)
        assert killed.is_ahead(Checkpoint(tmp_path))
        (tmp_path / "commits" / "0").touch()
        assert not killed.is_ahead(Checkpoint(tmp_path)), "Spark knows"
        (tmp_path / "offsets" / "1").touch()
        assert not killed.is_ahead(Checkpoint(tmp_path)), "the next batch is marked by nobody"


def test_the_judge_has_nothing_to_say_of_what_arrived_once_in_order() -> None:
    assert judge(GIVEN, [GIVEN[:3], GIVEN[3:]]).is_good
    assert judge(GIVEN, [[record] for record in reversed(GIVEN)]).is_good, "a table has no order"
    assert judge(GIVEN, [[*GIVEN[3:], *GIVEN[:3]]]).is_good, "of different partitions any may come first"


def test_the_judge_sees_what_is_lost_doubled_strange_or_out_of_order() -> None:
    aborted = Record(Place(0, 2), "dropped 2")
    assert judge(GIVEN, [GIVEN[1:]]).lost == GIVEN[:1]
    assert judge(GIVEN, [GIVEN, GIVEN[2:3]]).doubled == GIVEN[2:3]
    assert judge(GIVEN, [[*GIVEN, aborted]]).strange == [aborted]
    assert judge(GIVEN, [[GIVEN[1], GIVEN[0], *GIVEN[2:]]]).disordered == [GIVEN[0]]
    changed = GIVEN[0]._replace(value="plain 7")
    verdict = judge(GIVEN, [[changed, *GIVEN[1:]]])
    assert (verdict.lost, verdict.strange) == ([GIVEN[0]], [changed])


def test_the_source_itself_is_held_against_what_its_producers_were_told() -> None:
    given = [Record(Place(0, 0), "plain 0"), Record(Place(0, 1), "kept 1")]
    assert judge_source({"plain 0", "kept 1"}, {"dropped 2"}, given) == []
    assert len(judge_source({"plain 0", "plain 9"}, {"kept 1"}, [*given, given[0]])) == 3
