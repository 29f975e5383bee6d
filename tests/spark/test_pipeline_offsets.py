"""How far a job's output has come, shown and moved: after a table was put back the job reads what is missing once more, and nothing twice."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import pyarrow as pa
from msgspec import structs

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.__main__ import main
from ropewalk.spark.lake.judging import ERROR, dead_letter_schema
from ropewalk.spark.lake.kinds import Kind, open_table
from ropewalk.spark.lake.landing import stored_of
from ropewalk.spark.lake.shaping import raw_schema
from ropewalk.spark.lake.table import Commit, TableSpec
from ropewalk.spark.pipelines.catalogue import pipeline
from ropewalk.spark.pipelines.definition import Job, Table, define
from ropewalk.spark.pipelines.offsets import move, parse_moves, show
from ropewalk.spark.pipelines.status import held
from ropewalk.spark.refusals import DataLost, WrongUse
from tests.spark.conftest import Node
from tests.spark.test_lake_put_back import PUT_BACK, put_back
from tests.spark.test_spark_lake_tables import KINDS, topic_rows, write
from tests.spark.test_spark_sink_tasks import once, rows, task

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]


def job_for(node: Node, topic: str, path: Path, kind: Kind, **more: object) -> Job:
    settings = {"to": str(path), "table": kind, **more}
    table = Table(kind="archive", bootstrap=node.bootstrap, topics=[topic], settings=settings)
    return define("nightly", {"nightly": table}, table, settings_of=lambda each: pipeline(each).Settings)


def spec_for(path: Path) -> TableSpec:
    return TableSpec(
        address=str(path), owner="nightly", schema=raw_schema("date"), partition_columns=("date",)
    )


def fill(kind: Kind, path: Path, topic: str, count: int) -> None:
    """A batch for each offset, of partition 0; nothing of partition 1 but that it was looked at."""
    for number in range(count):
        table = open_table(kind, spec_for(path))
        places = {TopicPartition(topic, 0): number + 1, TopicPartition(topic, 1): 0}
        table.commit(Commit(write(table, topic_rows(number, 1, topic=topic)), places))


def kept(kind: Kind, path: Path, topic: str) -> dict[TopicPartition, int]:
    return stored_of(open_table(kind, spec_for(path)), [TopicPartition(topic, each) for each in (0, 1)], {})


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_shown_and_set(node: Node, kind: Kind, tmp_path: Path) -> None:
    topic = node.create(f"shown-{kind}")
    node.write(topic, 20)
    path, state = tmp_path / "lake", str(tmp_path / "state")
    job = job_for(node, topic, path, kind)
    with pytest.raises(WrongUse, match="there is no table"):
        show(job, pipeline("archive"), state)
    assert not path.exists() or not any(path.glob("*.parquet"))
    fill(kind, path, topic, 4)
    shown = show(job, pipeline("archive"), state)
    assert [(each.partition, each.kept) for each in shown.standings] == [(f"{topic}-0", 4), (f"{topic}-1", 0)]
    moved = move(job, pipeline("archive"), state, {TopicPartition(topic, 0): 7})
    assert [each.moved_to for each in moved.standings] == [7, None]
    assert kept(kind, path, topic) == {TopicPartition(topic, 0): 7, TopicPartition(topic, 1): 0}
    for wrong, told in (
        ({TopicPartition(topic, 0): 11}, "ends at 10, and 11 was asked for"),
        ({TopicPartition(topic, 2): 1}, "none of what nightly reads"),
        ({TopicPartition("another", 0): 1}, "none of what nightly reads"),
    ):
        with pytest.raises(WrongUse, match=told):
            move(job, pipeline("archive"), state, wrong)
    assert move(job, pipeline("archive"), state, {TopicPartition(topic, 0): 7}).notices == [
        "nothing is to be moved"
    ]


@pytest.mark.parametrize("kind", PUT_BACK)
def test_after_a_table_was_put_back_they_are_derived_from_its_rows(
    node: Node, kind: Kind, tmp_path: Path
) -> None:
    topic = node.create(f"derived-{kind}")
    node.write(topic, 20)
    path, state = tmp_path / "lake", str(tmp_path / "state")
    job = job_for(node, topic, path, kind)
    fill(kind, path, topic, 4)
    checkpoint = Path(job.checkpoint)
    (checkpoint / "offsets").mkdir(parents=True)
    put_back(kind, path, 1)
    shown = show(job, pipeline("archive"), state)
    assert [(each.kept, each.put_back_to) for each in shown.standings] == [(4, 2), (0, 0)]
    assert "was put back" in shown.notices[0]
    with held(state, "nightly"), pytest.raises(WrongUse, match="runs on this machine already"):
        move(job, pipeline("archive"), state, None)
    with pytest.raises(DataLost, match="put back"):
        kept(kind, path, topic)
    moved = move(job, pipeline("archive"), state, None)
    assert [(each.kept, each.moved_to) for each in moved.standings] == [(4, 2), (0, 0)]
    assert kept(kind, path, topic) == {TopicPartition(topic, 0): 2, TopicPartition(topic, 1): 0}
    assert not checkpoint.exists()
    assert next(each.name for each in checkpoint.parent.iterdir()).startswith("nightly.before-")


def test_dead_letters_are_put_back_with_the_rows_or_not_at_all(node: Node, tmp_path: Path) -> None:
    topic = node.create("derived-letters")
    node.write(topic, 20)
    path, state = tmp_path / "lake", str(tmp_path / "state")
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"id": {"type": "integer"}}}')
    job = job_for(node, topic, path, "delta", format="json", schema=str(schema))
    fill("delta", path, topic, 4)
    letters = structs.replace(
        spec_for(tmp_path / "lake_dead_letters"), schema=dead_letter_schema(raw_schema("date"))
    )
    place = TopicPartition(topic, 0)
    for number in (0, 3):
        table = open_table("delta", letters)
        bad = topic_rows(number, 1, topic=topic).append_column(ERROR, pa.array(["bad"]))
        table.commit(Commit(write(table, bad), {place: number + 1}))
    put_back("delta", path, 1)
    with pytest.raises(WrongUse, match=r"lake_dead_letters has rows of derived-letters-0 up to 4.*twice"):
        move(job, pipeline("archive"), state, None)
    put_back("delta", tmp_path / "lake_dead_letters", 0)
    move(job, pipeline("archive"), state, None)
    assert stored_of(open_table("delta", letters), [place], {}) == {place: 2}


def test_of_a_topic_the_markers_are_shown_and_not_moved(node: Node, tmp_path: Path) -> None:
    topic, source = node.create("shown-topic"), node.create("shown-source")
    ranges = {"ranges": json.dumps({source: {"0": [0, 4], "1": [0, 3]}, "#ids": {source: "an id"}})}
    assert task(once(node, topic, more=ranges), 0, rows(1))
    settings: dict[str, Any] = {"to_topic": topic, "sql": f"SELECT value FROM `{source}`", "tasks": 1}
    table = Table(
        kind="transform",
        bootstrap=node.bootstrap,
        topics=[source],
        checkpoint=str(tmp_path),
        settings=settings,
    )
    job = define(topic, {topic: table}, table, settings_of=lambda each: pipeline(each).Settings)
    shown = show(job, pipeline("transform"), str(tmp_path))
    assert [(each.partition, each.topic_id, each.kept) for each in shown.standings] == [
        (f"{source}-0", "an id", 4),
        (f"{source}-1", "an id", 3),
    ]
    with pytest.raises(WrongUse, match="not taken back"):
        move(job, pipeline("transform"), str(tmp_path), None)


@pytest.mark.parametrize(
    "text", ["", "orders", "orders:0", "orders=4", "orders:x=4", "orders:0=-1", ":0=4", "orders:0="]
)
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(WrongUse, match="TOPIC:PARTITION=OFFSET"):
        parse_moves([text])


def test_offsets_are_said_topic_by_topic() -> None:
    assert parse_moves(["a:b:0=4", "orders:12=0"]) == {
        TopicPartition("a:b", 0): 4,
        TopicPartition("orders", 12): 0,
    }


def test_the_command_shows_and_moves(node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topic = node.create("commanded")
    node.write(topic, 20)
    fill("delta", tmp_path / "lake", topic, 4)
    words = ["offsets", "archive", "--name=nightly", f"--topic={topic}", "--to", str(tmp_path / "lake")]
    words += ["--bootstrap", node.bootstrap, "--state", str(tmp_path / "state")]
    assert main(words) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == [["PARTITION", "TOPIC", "ID", "NEXT", "OFFSET"], [f"{topic}-0", "-", "4"]]
    assert main([*words, "--json", "--set", f"{topic}:0=2"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["standings"][0] == {
        "partition": f"{topic}-0",
        "topic_id": None,
        "kept": 4,
        "put_back_to": None,
        "moved_to": 2,
    }
    assert main([*words, "--set", f"{topic}:0=2", "--from-table"]) == 2
    assert "one of them" in capsys.readouterr().err
