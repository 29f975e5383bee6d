"""A queue's topic in Spark while the queue is used: its messages and nothing else, as a source and in an archive."""

from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from deltalake import DeltaTable  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from ropewalk import Queue  # noqa: E402
from ropewalk.spark.pipelines.archive import Archive, ArchiveSettings  # noqa: E402
from ropewalk.spark.pipelines.pipeline import Work  # noqa: E402
from tests.spark.conftest import Node  # noqa: E402

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

VALUES = [f"message {number:03}" for number in range(100)]


def use(queue: Queue, values: list[str]) -> None:
    """State of the queue comes between the messages. The first one stays: so does the log's start."""
    for start in range(0, len(values), 5):
        queue.send_many(values[start : start + 5])
        for message in queue.receive(4, wait_s=1, visibility_s=600):
            if message.body == VALUES[0]:
                message.release()
            else:
                message.delete()


def test_a_source_and_an_archive_have_exactly_the_messages_of_a_queue_that_is_used(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    name = "queue-in-spark"
    with Queue(name, bootstrap=node.bootstrap, create=True) as queue:
        use(queue, VALUES[:60])
        frame = spark.read.format("ropewalk").option("bootstrap", node.bootstrap).option("subscribe", name)
        assert [bytes(row.value).decode() for row in frame.load().orderBy("offset").collect()] == VALUES[:60]
        assert archive(spark, node, name, tmp_path) == VALUES[:60]
        use(queue, VALUES[60:])
        assert archive(spark, node, name, tmp_path) == VALUES, "each once, and what came since"
        rows = frame.load().orderBy("offset").collect()
        assert [bytes(row.value).decode() for row in rows] == VALUES
        assert rows[-1].offset > 110, "there is state between the messages"


def archive(spark: SparkSession, node: Node, topic: str, directory: Path) -> list[str]:
    """What the archive's table holds when all that is there was archived."""
    lake = directory / "lake"
    work = Work(
        spark=spark,
        name="queue",
        bootstrap=node.bootstrap,
        source={"subscribe": topic, "startingOffsets": "earliest"},
        checkpoint=str(lake / "_ropewalk" / "checkpoints" / "queue"),
        once=True,
        interval="1 second",
        settings=ArchiveSettings(to=str(lake)),
    )
    assert Archive.start(work).query.awaitTermination(120)
    Archive.finish(work)
    rows = DeltaTable(str(lake)).to_pyarrow_table(columns=["offset", "value"]).to_pylist()
    return [row["value"].decode() for row in sorted(rows, key=lambda row: int(row["offset"]))]
