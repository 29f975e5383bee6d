"""An archive whose topic was deleted and made anew under its name, at every moment: nothing is left out unseen and nothing is there twice."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import pyarrow.dataset as ds
from deltalake import DeltaTable

from ropewalk.spark.lake.kinds import Kind
from ropewalk.spark.pipelines.archive import Archive, ArchiveSettings
from ropewalk.spark.pipelines.pipeline import Work
from ropewalk.spark.refusals import DataLost
from tests.spark.conftest import Node
from tests.spark.stand_in import Query, StandIn
from tests.spark.test_spark_lake_tables import KINDS, iceberg_rows

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]

OLD = 20
"""Records of the former topic, before anything happens to it."""
LENGTHS = {"longer": 30, "equal": 20, "shorter": 4}
"""Records of the topic that takes its place."""
ANEW = 1000
"""What those are numbered from."""


class Job:
    """An archive of one topic or of those of a pattern."""

    def __init__(self, node: Node, kind: Kind, directory: Path, **source: str) -> None:
        self.node, self.kind, self.lake = node, kind, directory / "lake"
        self.checkpoint = directory / "checkpoint"
        self._source = {"startingOffsets": "earliest", **source}

    def start(
        self, before_batch: Callable[[int], None] = lambda _: None, *, once: bool = True, **settings: Any
    ) -> Query:
        work = Work(
            spark=StandIn(before_batch),  # type: ignore[arg-type]  # as much of it as is used
            name="nightly",
            bootstrap=self.node.bootstrap,
            source=self._source,
            checkpoint=str(self.checkpoint),
            once=once,
            interval="1 second",
            settings=ArchiveSettings(to=str(self.lake), table=self.kind, upkeep_batches=0, **settings),
        )
        query = Archive.start(work).query
        assert isinstance(query, Query)
        return query

    def run(self, before_batch: Callable[[int], None] = lambda _: None, **settings: Any) -> None:
        self.start(before_batch, **settings).awaitTermination()

    def lose_the_checkpoint(self) -> None:
        shutil.rmtree(self.checkpoint)

    def numbers(self) -> list[int]:
        """What `Node.write` counted, as it stands in the table."""
        match self.kind:
            case "delta":
                found = DeltaTable(str(self.lake)).to_pyarrow_table(columns=["value"])
            case "iceberg":
                found = iceberg_rows(self.lake)
            case "parquet":
                found = ds.dataset(self.lake, partitioning="hive").to_table(columns=["value"])
        return sorted(int(value[1:]) for value in found["value"].to_pylist())

    def topic_ids(self) -> set[str | None]:
        match self.kind:
            case "delta":
                found = DeltaTable(str(self.lake)).to_pyarrow_table(columns=["topic_id"])
            case "iceberg":
                found = iceberg_rows(self.lake)
            case "parquet":
                files = ds.dataset(self.lake, partitioning="hive")
                found = ds.dataset(self.lake, partitioning="hive", schema=_widest(files)).to_table(
                    columns=["topic_id"]
                )
        return set(found["topic_id"].to_pylist())


def _widest(files: Any) -> Any:
    import pyarrow as pa

    return pa.unify_schemas([each.physical_schema for each in files.get_fragments()])


def renew(node: Node, topic: str, count: int, first: int = ANEW) -> None:
    node.delete(topic)
    node.create(topic)
    node.write(topic, count, first=first)


def anew(count: int) -> list[int]:
    return list(range(ANEW, ANEW + count))


@pytest.mark.parametrize("when", ["at rest", "with a lost checkpoint", "during a batch"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_told_and_added_where_that_was_said(
    node: Node, kind: Kind, length: str, when: str, tmp_path: Path
) -> None:
    count, topic = LENGTHS[length], node.create(tmp_path.name)
    node.write(topic, OLD)
    job = Job(node, kind, tmp_path, subscribe=topic)
    job.run()
    if when == "during a batch":
        node.write(topic, 10, first=OLD)
        with pytest.raises(DataLost, match="was deleted and made anew"):
            job.run(lambda _: renew(node, topic, count))
    else:
        renew(node, topic, count)
        if when == "with a lost checkpoint":
            job.lose_the_checkpoint()
    for _ in range(2):
        with pytest.raises(DataLost, match="was deleted and made anew"):
            job.run()
    assert job.numbers() == list(range(OLD))
    job.run(on_new_topic="append")
    assert job.numbers() == [*range(OLD), *anew(count)]
    node.write(topic, 3, first=5000)
    job.lose_the_checkpoint()
    job.run()
    assert job.numbers() == [*range(OLD), *anew(count), *range(5000, 5003)]
    old_id, new_id = sorted(job.topic_ids(), key=bool)
    assert old_id is None
    assert new_id


# Kinds differ in how they keep ids, not in what lengths say of them.
@pytest.mark.parametrize("when", ["at rest", "with a lost checkpoint", "during a batch"])
@pytest.mark.parametrize(
    ("kind", "length"), [*((kind, "longer") for kind in KINDS), ("parquet", "equal"), ("parquet", "shorter")]
)
def test_of_a_pattern_the_other_topics_go_on(
    node: Node, kind: Kind, length: str, when: str, tmp_path: Path
) -> None:
    count = LENGTHS[length]
    renewed, other = (node.create(f"{tmp_path.name}-{name}") for name in ("renewed", "other"))
    for topic, first in ((renewed, 0), (other, 100)):
        node.write(topic, OLD, first=first)
    expected = [*range(OLD), *range(100, 100 + OLD)]
    job = Job(node, kind, tmp_path, subscribePattern=f"{tmp_path.name}-.*")
    job.run()
    node.write(other, 10, first=100 + OLD)
    if when == "during a batch":
        node.write(renewed, 10, first=OLD)
        with pytest.raises(DataLost, match="was deleted and made anew"):
            job.run(lambda _: renew(node, renewed, count))
        assert job.numbers() == expected, "what is gone with the topic is told"
        job.lose_the_checkpoint()
    else:
        renew(node, renewed, count)
        if when == "with a lost checkpoint":
            job.lose_the_checkpoint()
    expected += range(100 + OLD, 110 + OLD)
    job.run()
    assert job.numbers() == expected
    node.write(other, 3, first=110 + OLD)
    expected += range(110 + OLD, 113 + OLD)
    job.run()
    assert job.numbers() == expected
    job.run(on_new_topic="append")
    assert job.numbers() == [*expected, *anew(count)]


@pytest.mark.parametrize("is_first_batch", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_before_has_nothing_added_twice(
    node: Node, kind: Kind, is_first_batch: bool, tmp_path: Path
) -> None:
    """It was put back, or is that of another machine: with a batch that was begun when the former topic was there."""
    topic = node.create(tmp_path.name)
    node.write(topic, OLD)
    job = Job(node, kind, tmp_path, subscribe=topic)
    job.run()
    if is_first_batch:
        job.lose_the_checkpoint()
    node.write(topic, 10, first=OLD)
    with pytest.raises(DataLost, match="was deleted and made anew"):
        job.run(lambda _: renew(node, topic, 30))
    shutil.copytree(job.checkpoint, tmp_path / "before")
    job.lose_the_checkpoint()
    job.run(on_new_topic="append")
    assert job.numbers() == [*range(OLD), *anew(30)]
    job.lose_the_checkpoint()
    shutil.copytree(tmp_path / "before", job.checkpoint)
    node.write(topic, 5, first=ANEW + 30)
    job.run(on_new_topic="append")
    assert job.numbers() == [*range(OLD), *anew(35)]
