"""A job that nobody named writes under a name that no other machine has, and keeps it."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from ropewalk.spark.pipelines.beginnings import Definition, Kept
from ropewalk.spark.pipelines.catalogue import pipeline
from ropewalk.spark.pipelines.definition import Table, define
from ropewalk.spark.pipelines.pipeline import Work
from ropewalk.spark.pipelines.resuming import sink_of
from ropewalk.spark.pipelines.sink_names import sink_name
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.sink.marker import Decision
from ropewalk.spark.sink.options import SinkOptions, parse_sink
from ropewalk.spark.sink.transaction import transactional_id
from tests.spark.conftest import Node
from tests.spark.test_spark_sink_tasks import committed, rows, task


def directory(path: Path, *status: str) -> str:
    path.mkdir()
    for name in status:
        (path / f"{name}.json").write_text("{}")
    return str(path)


def test_two_state_directories_have_two_names_and_each_keeps_its_own(tmp_path: Path) -> None:
    one, other = directory(tmp_path / "one"), directory(tmp_path / "other")
    first = sink_name(one, "transform", is_named=False)
    second = sink_name(other, "transform", is_named=False)
    assert first != second
    assert {transactional_id(first, task) for task in range(4)}.isdisjoint(
        transactional_id(second, task) for task in range(4)
    )
    (Path(one) / "transform.json").write_text("{}")
    assert sink_name(one, "transform", is_named=False) == first, "also when it has run"


def test_a_name_that_was_given_is_the_same_everywhere(tmp_path: Path) -> None:
    one, other = directory(tmp_path / "one"), directory(tmp_path / "other")
    assert sink_name(one, "copy", is_named=True) == sink_name(other, "copy", is_named=True) == "copy"


def test_one_that_ran_before_goes_on_where_its_markers_are(tmp_path: Path) -> None:
    before = directory(tmp_path / "before", "transform")
    assert sink_name(before, "transform", is_named=False) == "transform"


def test_a_name_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    broken = directory(tmp_path / "broken")
    (Path(broken) / "transform.sink").write_bytes(b"\xff")
    with pytest.raises(WrongUse, match="cannot be read"):
        sink_name(broken, "transform", is_named=False)


@pytest.mark.parametrize(
    ("asked", "name", "is_named"),
    [("transform", None, False), ("transform", "mine", True), ("copy", None, True)],
    ids=["by its kind", "by --name", "by the file"],
)
def test_who_has_given_a_name(asked: str, name: str | None, is_named: bool) -> None:
    said = {"sql": "SELECT value FROM orders", "to_topic": "copied"}
    table = Table(kind="transform", topics=["orders"], checkpoint="/p", settings=dict(said))
    jobs = {"copy": table} if asked == "copy" else {}
    job = define(asked, jobs, table, name=name, settings_of=lambda kind: pipeline(kind).Settings)
    assert job.is_named is is_named


def test_a_checkpoint_keeps_the_name_that_it_was_begun_under() -> None:
    definition = Definition("", "", "", "", 1, {}, "", "")

    def work(sink: str | None) -> Work:
        # No session is asked for anything here.
        return Work(
            spark=None,  # type: ignore[arg-type]
            name="transform",
            bootstrap="",
            source={},
            checkpoint="",
            once=True,
            interval="",
            settings=None,
            sink=sink,
        )

    assert sink_of(work("transform-a"), None) == "transform-a"
    assert sink_of(work(None), None) == "transform"
    assert sink_of(work("transform-b"), Kept(definition, {}, sink="transform-a")) == "transform-a"
    assert sink_of(work("transform-b"), Kept(definition, {})) == "transform", "from before"


@pytest.mark.compat
@pytest.mark.timeout(120)
def test_two_unnamed_jobs_write_beside_each_other(node: Node, tmp_path: Path) -> None:
    """Both to one topic, batch by batch in turn; under one name each would shut the other out, or skip what the other wrote."""
    topic = node.create("unnamed")

    def options(name: str) -> SinkOptions:
        given = {
            "bootstrap": node.bootstrap,
            "topic": topic,
            "exactlyOnce": "true",
            "tasks": "1",
            "name": name,
        }
        return parse_sink(given, streaming=True)

    names = [sink_name(directory(tmp_path / each), "transform", is_named=False) for each in ("one", "other")]
    for batch in range(2):
        for number, name in enumerate(names):
            parsed = options(name)
            decided = task(parsed, batch, rows(10 * number + batch), query=f"q{number}")
            assert decided is Decision.WRITE
    assert committed(node, topic) == [0, 1, 10, 11]
