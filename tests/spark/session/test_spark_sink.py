"""Topics written by Spark itself: a bare session, batch and stream, at least once and exactly once."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pyspark = pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession  # noqa: E402

from ropewalk.client.calls.partitioner import partition_for_key  # noqa: E402
from tests.spark.conftest import Node  # noqa: E402
from tests.spark.patience import patiently  # noqa: E402

pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]


class Read(tuple[int | None, bytes | None, bytes | None, int, Any]):
    """Partition, key, value, timestamp and headers of one record."""


def committed(node: Node, topic: str, partitions: int = 2) -> list[Read]:
    """What a reader of committed records gets, in order of partition and offset."""
    return [
        Read((each.partition(), each.key(), each.value(), each.timestamp()[1], each.headers()))
        for each in node.read(topic, partitions)
    ]


def values(node: Node, topic: str) -> Counter[str]:
    return Counter((record[2] or b"").decode() for record in committed(node, topic))


def written(frame: DataFrame, node: Node, **options: str) -> None:
    frame.write.format("ropewalk").option("bootstrap", node.bootstrap).options(**options).mode(
        "append"
    ).save()


def numbers(first: int, end: int) -> Counter[str]:
    return Counter(str(number) for number in range(first, end))


def test_a_bare_session_writes_a_topic(spark: SparkSession, node: Node) -> None:
    topic = node.create("written")
    frame = spark.range(200).selectExpr(
        "cast(id as string) as key",
        "concat('v', id) as value",
        "timestamp_millis(1700000000000 + id) as timestamp",
        "if(id % 2 = 0, array(struct('n' as key, cast(cast(id as string) as binary) as value)), null) as headers",
    )
    written(frame, node, topic=topic, **{"kafka.compression.type": "lz4"})
    records = committed(node, topic)
    assert len(records) == 200
    for partition, key, value, timestamp, headers in records:
        assert key is not None
        number = int(key)
        assert value == b"v%d" % number
        assert partition == partition_for_key(key, 2), "as Java's clients choose"
        assert (
            datetime.fromtimestamp(timestamp / 1000, UTC).timestamp() == (1_700_000_000_000 + number) / 1000
        )
        assert headers == ([("n", key)] if number % 2 == 0 else None)


def test_rows_name_their_topic_and_partition_and_others_take_turns(spark: SparkSession, node: Node) -> None:
    one, other = node.create("named-1"), node.create("named-2")
    frame = spark.range(40).selectExpr(
        "cast(id as string) as value",
        f"if(id < 20, '{one}', '{other}') as topic",
        "if(id < 10, 1, null) as partition",
    )
    written(frame.coalesce(1), node)
    first = committed(node, one)
    assert [int(record[2] or b"") for record in first if record[0] == 1][:10] == list(range(10))
    assert values(node, one) == numbers(0, 20)
    assert values(node, other) == numbers(20, 40)


def test_what_cannot_be_written_is_told_by_driver_and_task(spark: SparkSession, node: Node) -> None:
    frame = spark.range(1).coalesce(1)
    with pytest.raises(Exception, match="'value' is int, must be string or binary"):
        written(frame.selectExpr("1 as value"), node, topic="written")
    with pytest.raises(Exception, match="partition 7 of written, which has 2"):
        written(frame.selectExpr("'a' as value", "7 as partition"), node, topic="written")


def stream(
    spark: SparkSession, node: Node, source: str, checkpoint: Path, options: dict[str, str], tasks: int = 2
) -> None:
    """What is there, as one batch, keyed to so many tasks."""
    writer = (
        spark.readStream.format("ropewalk")
        .option("bootstrap", node.bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("key", "substr(cast(value as string), 2) as value")
        .repartition(tasks, "key")
        .writeStream.format("ropewalk")
        .option("bootstrap", node.bootstrap)
        .option("checkpointLocation", str(checkpoint))
        .options(**options)
        .trigger(availableNow=True)
    )
    patiently(lambda: writer.start().awaitTermination())


def forget_last_commit(checkpoint: Path) -> None:
    commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda each: int(each.name))
    commits[-1].unlink()
    (checkpoint / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)


def test_a_stream_with_a_name_is_written(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    """Spark hands the name to the sink among the user's options."""
    source, target = node.create("named-from"), node.create("named-to")
    node.write(source, 4)
    query = (
        spark.readStream.format("ropewalk")
        .option("bootstrap", node.bootstrap)
        .option("startingOffsets", "earliest")
        .load(source)
        .select("key", "value")
        .writeStream.format("ropewalk")
        .queryName("loud")
        .option("bootstrap", node.bootstrap)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start(target)
    )
    assert query.awaitTermination(90)
    assert spark.read.format("ropewalk").option("bootstrap", node.bootstrap).load(target).count() == 4


def test_a_stream_exactly_once_skips_what_comes_again(
    spark: SparkSession, node: Node, tmp_path: Path
) -> None:
    source, target, control = node.create("once-in"), node.create("once-out"), node.create("twice-out")
    node.write(source, 20)
    once = {"exactlyOnce": "true", "name": "once", "tasks": "2", "topic": target}
    stream(spark, node, source, tmp_path / "a", once)
    assert values(node, target) == numbers(0, 20)
    forget_last_commit(tmp_path / "a")
    stream(spark, node, source, tmp_path / "a", once)
    assert values(node, target) == numbers(0, 20)

    stream(spark, node, source, tmp_path / "b", {"topic": control})
    forget_last_commit(tmp_path / "b")
    stream(spark, node, source, tmp_path / "b", {"topic": control})
    assert values(node, control) == numbers(0, 20) + numbers(0, 20), (
        "without a marker the batch is there twice"
    )

    forget_last_commit(tmp_path / "a")
    with pytest.raises(Exception, match="tasks=2"):
        stream(spark, node, source, tmp_path / "a", {**once, "tasks": "3"}, tasks=3)
    assert values(node, target) == numbers(0, 20)


def test_a_batch_is_known_by_its_ranges_and_counts_though_it_has_no_rows(
    spark: SparkSession, node: Node
) -> None:
    target = node.create("explicit")

    def write(batch: int, first: int, end: int, *, rows: range) -> None:
        frame = spark.range(rows.start, rows.stop).where("id >= 0").selectExpr("cast(id as string) as value")
        options = {
            "exactlyOnce": "true",
            "name": "explicit",
            "topic": target,
            "tasks": "2",
            "query": "q",
            "batch": str(batch),
            "ranges": json.dumps({"source": {"0": [first, end]}}),
        }
        written(frame.repartition(2, "value"), node, **options)

    write(0, 0, 10, rows=range(0))  # every task leaves its marker all the same
    write(1, 10, 20, rows=range(10))
    write(1, 10, 20, rows=range(100, 110))  # it was written, whatever it comes to
    with pytest.raises(Exception, match="reads other offsets"):
        write(1, 10, 19, rows=range(9))
    assert values(node, target) == numbers(0, 10)
