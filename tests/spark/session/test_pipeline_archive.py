"""Topics archived by Spark: each record is in the table once, whatever happens to the checkpoint."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.figures import Figures
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.shaping import raw_schema
from ropewalk.spark.lake.table import Commit, TableSpec
from ropewalk.spark.pipelines.archive import Archive, ArchiveSettings
from ropewalk.spark.pipelines.pipeline import Work
from ropewalk.spark.refusals import DataLost, NotOurs, WrongUse
from tests.spark.conftest import Node

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

Run = Callable[..., Figures]


@pytest.fixture
def run(spark: SparkSession, node: Node, tmp_path: Path) -> Run:
    """Runs a job to the end of what is there, and tells what it came to."""

    def run_(
        topic: str,
        *,
        name: str = "nightly",
        source: dict[str, str] | None = None,
        to: str = "lake",
        **settings: Any,
    ) -> Figures:
        work = Work(
            spark=spark,
            name=name,
            bootstrap=node.bootstrap,
            source={"subscribe": topic, "startingOffsets": "earliest", **(source or {})},
            checkpoint=str(tmp_path / to / "_ropewalk" / "checkpoints" / name),
            once=True,
            interval="1 second",
            settings=ArchiveSettings(to=str(tmp_path / to), **settings),
        )
        started = Archive.start(work)
        assert started.query.awaitTermination(120)
        Archive.finish(work)
        assert started.tally is not None
        return started.tally.total

    return run_


def numbers(table: Path) -> list[int]:
    """What `Node.write` counted, as it stands in the table."""
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=["value"])
    return sorted(int(value[1:]) for value in rows["value"].to_pylist())


def test_a_topic_is_archived_once_whatever_happens_to_the_checkpoint(
    node: Node, run: Run, tmp_path: Path
) -> None:
    topic, lake = node.create("archived"), tmp_path / "lake"
    checkpoint = lake / "_ropewalk" / "checkpoints" / "nightly"
    node.write(topic, 50)
    figures = run(topic, batch_bytes=400)
    assert (figures.read_rows, figures.written_rows) == (50, 50)
    assert numbers(lake) == list(range(50))
    batches = [each for each in (checkpoint / "commits").iterdir() if each.name.isdecimal()]
    assert len(batches) > 2, "a long run is many batches"
    version = DeltaTable(str(lake)).version()
    assert run(topic) == Figures()
    assert numbers(lake) == list(range(50))
    assert DeltaTable(str(lake)).version() == version  # there was nothing to commit

    last = max(int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdecimal())
    for lost in (checkpoint / "commits").glob(f"*{last}*"):
        lost.unlink()  # as if the driver had died after the table's commit
    node.write(topic, 10, first=50)
    figures = run(topic, source={"minPartitions": "4"})
    assert (figures.read_rows, figures.written_rows) == (10, 10)
    assert numbers(lake) == list(range(60))

    shutil.rmtree(checkpoint)
    node.write(topic, 10, first=60)
    run(topic, source={"maxOffsetsPerTrigger": "7"})
    assert numbers(lake) == list(range(70))

    with pytest.raises(NotOurs, match="belongs to the job 'nightly', and this is 'hourly'"):
        run(topic, name="hourly")
    kept = tmp_path / "kept"
    shutil.copytree(checkpoint, kept)
    shutil.rmtree(lake)
    shutil.copytree(kept, checkpoint)
    node.write(topic, 1, first=70)
    with pytest.raises(StreamingQueryException, match="the table has heard nothing of it yet"):
        run(topic)
    assert numbers(lake) == []


def test_a_topic_made_anew_is_refused_or_added_by_its_id(node: Node, run: Run, tmp_path: Path) -> None:
    topic, lake = node.create("renewed"), tmp_path / "lake"
    checkpoint = lake / "_ropewalk" / "checkpoints" / "nightly"
    node.write(topic, 20)
    run(topic)
    node.delete(topic)
    node.create(topic)
    node.write(topic, 30, first=1000)
    with pytest.raises(DataLost, match="on_new_topic=append"):
        run(topic)
    assert numbers(lake) == list(range(20))
    run(topic, on_new_topic="append")
    assert numbers(lake) == [*range(20), *range(1000, 1030)]
    rows = DeltaTable(str(lake)).to_pyarrow_table(columns=["value", "topic_id"]).to_pylist()
    assert {bool(row["topic_id"]) for row in rows if len(row["value"]) < 5} == {False}
    assert len({row["topic_id"] for row in rows if len(row["value"]) == 5}) == 1
    shutil.rmtree(checkpoint)
    node.write(topic, 5, first=1030)
    run(topic)
    assert numbers(lake) == [*range(20), *range(1000, 1035)]
    node.delete(topic)
    node.create(topic)
    node.write(topic, 60, first=2000)
    shutil.rmtree(checkpoint)
    with pytest.raises(DataLost, match="on_new_topic=append"):
        run(topic)
    run(topic, on_new_topic="append")
    assert numbers(lake) == [*range(20), *range(1000, 1035), *range(2000, 2060)]


def test_a_part_of_a_topic_is_archived_and_the_rest_is_passed_over_for_good(
    node: Node, run: Run, tmp_path: Path
) -> None:
    topic, lake = node.create("partly"), tmp_path / "lake"
    node.write(topic, 20)
    chosen = {
        "columns": ["key", "offset"],
        "where": "value LIKE 'v1%' AND partition = 1",
        "mask": {"key": "last 1"},
    }
    with pytest.raises(WrongUse, match="did you mean partition"):
        run(topic, where="partitoin = 1")
    assert not lake.exists(), "refused before anything was made"
    run(topic, **chosen)
    rows = DeltaTable(str(lake)).to_pyarrow_table()
    assert rows.column_names == ["key", "offset", "date"]
    numbers_left = [1, 11, 13, 15, 17, 19]
    # A key that has no more than its last character keeps nothing of it; those here have two and more.
    assert sorted(rows["offset"].to_pylist()) == [number // 2 for number in numbers_left]
    assert sorted(rows["key"].to_pylist()) == sorted(str(number)[-1].encode() for number in numbers_left)
    table = open_table(
        "delta",
        TableSpec(address=str(lake), owner="nightly", schema=rows.schema, partition_columns=("date",)),
    )
    ends = {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 10}
    assert table.next_offsets(ends) == ends, "offsets move past what is left out"
    version = DeltaTable(str(lake)).version()
    run(topic, columns=["key", "offset"])
    assert DeltaTable(str(lake)).version() == version, "it is not looked at again"


def test_readers_of_all_kinds_agree(node: Node, run: Run, tmp_path: Path) -> None:
    for topic in ("north", "south"):
        node.create(topic)
        node.write(topic, 30)
    lake = tmp_path / "lake"
    run("north,south", compact_small_files=2)
    table = DeltaTable(str(lake))
    assert table.metadata().partition_columns == ["topic", "date"]
    rows = table.to_pyarrow_table().sort_by([("topic", "ascending"), ("timestamp", "ascending")])
    assert rows.num_rows == 60
    first = rows.slice(1, 1).to_pylist()[0]
    assert (first["key"], first["value"], first["topic"], first["partition"], first["offset"]) == (
        b"k1",
        b"v1",
        "north",
        1,
        0,
    )
    assert first["headers"] == [{"key": "n", "value": b"1"}]
    assert str(first["date"]) == "2023-11-14"
    assert len(table.file_uris()) == 2  # one for each topic: what two tasks wrote was joined

    dataset = table.to_pyarrow_dataset()
    counted = duckdb.sql(
        'select topic, count(*), min("offset"), max("offset") from dataset group by topic order by topic'
    )
    assert counted is not None
    assert counted.fetchall() == [("north", 30, 0, 14), ("south", 30, 0, 14)]
    assert dataset.count_rows(filter=ds.field("topic") == "south") == 30

    by_name = sorted(pq.read_table(each, partitioning=None).num_rows for each in table.file_uris())
    assert by_name == [30, 30]
    plain = ds.dataset(
        table.file_uris(), partitioning=ds.partitioning(flavor="hive"), partition_base_dir=str(lake)
    )
    assert sorted(plain.to_table()["value"].to_pylist()) == sorted(rows["value"].to_pylist())


def test_a_plain_directory_that_begins_late_begins_there_for_good(
    spark: SparkSession, node: Node, run: Run, tmp_path: Path
) -> None:
    topic, lake = node.create("plain"), tmp_path / "lake"
    node.write(topic, 10)

    def go_on() -> None:
        run(topic, source={"startingOffsets": "latest"}, table="parquet", partition_by="hour")

    go_on()
    node.write(topic, 15, first=10)
    shutil.rmtree(lake / "_ropewalk" / "checkpoints")
    go_on()
    assert [each.name for each in lake.glob("[!_]*")] == ["date=2023-11-14"]
    rows = spark.read.parquet(str(lake))
    assert sorted(int(bytes(row.value)[1:]) for row in rows.select("value").collect()) == list(range(10, 25))
    assert sorted(rows.columns) == sorted(raw_schema("hour").names)


def test_a_topic_that_is_not_there_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="there is no nowhere"):
        run("nowhere")
    assert not (tmp_path / "lake").exists()


def test_records_that_are_gone_are_told(node: Node, run: Run, tmp_path: Path) -> None:
    """The table has more of the topic than there is: it was deleted and made anew."""
    topic, lake = node.create("anew"), tmp_path / "lake"
    node.write(topic, 4)
    spec = TableSpec(
        address=str(lake), owner="nightly", schema=raw_schema("date"), partition_columns=("date",)
    )
    open_table("delta", spec).commit(Commit((), {TopicPartition(topic, 0): 10, TopicPartition(topic, 1): 2}))
    with pytest.raises(PySparkException, match="The topic was made anew"):
        run(topic)
    assert numbers(lake) == []


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="keep_snapshots_hours is -1, must be at least 0"):
        ArchiveSettings(to="x", keep_snapshots_hours=-1)
