"""Topics read by Spark itself: a bare session, without registration or settings."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pyspark = pytest.importorskip("pyspark")

from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402

from ropewalk.base.ids import TopicPartition  # noqa: E402
from ropewalk.spark.ranges import IDS  # noqa: E402
from ropewalk.spark.source import RopewalkSource  # noqa: E402
from tests.spark.conftest import Node  # noqa: E402
from tests.spark.patience import patiently  # noqa: E402

pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]


def read(spark: SparkSession, node: Node, **options: str) -> Any:
    return spark.read.format("ropewalk").option("bootstrap", node.bootstrap).options(**options)


def values(frame: DataFrame) -> list[str]:
    return sorted(row[0] for row in frame.selectExpr("cast(value as string)").collect())


def expected(first: int, end: int) -> list[str]:
    return sorted(f"v{number}" for number in range(first, end))


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString()).replace("RuntimeFilters", "")


def test_a_bare_session_reads_a_topic(spark: SparkSession, node: Node) -> None:
    topic = node.create("bare")
    node.write(topic, 50)
    frame = read(spark, node, subscribe=topic, includeHeaders="true").load()
    assert frame.columns == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
    ]
    rows = sorted(frame.collect(), key=lambda row: row.timestamp)
    assert len(rows) == 50
    first, second = rows[0], rows[1]
    assert (bytes(second.key), bytes(second.value), second.topic, second.partition, second.offset) == (
        b"k1",
        b"v1",
        topic,
        1,
        0,
    )
    assert second.timestamp.astimezone(UTC) == datetime.fromtimestamp(1_700_000_000.001, UTC)
    assert [(header.key, bytes(header.value)) for header in second.headers] == [("n", b"1")]
    assert first.headers is None


def test_fewer_columns_by_a_schema_and_a_count(spark: SparkSession, node: Node) -> None:
    topic = node.create("narrow")
    node.write(topic, 20)
    frame = read(spark, node, subscribe=topic).schema("offset long, partition int").load()
    assert sorted(tuple(row) for row in frame.collect()) == [
        (n // 2, n % 2) for n in sorted(range(20), key=lambda n: (n // 2, n % 2))
    ]
    assert frame.count() == 20


def test_offsets_and_timestamps_bound_a_batch(spark: SparkSession, node: Node) -> None:
    topic = node.create("bounds")
    node.write(topic, 40)
    by_offset = read(
        spark,
        node,
        assign=f'{{"{topic}": [0]}}',
        startingOffsets=f'{{"{topic}": {{"0": 5}}}}',
        endingOffsets=f'{{"{topic}": {{"0": 8}}}}',
    )
    assert values(by_offset.load()) == sorted(["v10", "v12", "v14"])
    by_time = read(
        spark, node, subscribePattern="bou.*", startingTimestamp=str(1_700_000_000_030), minPartitions="6"
    ).load()
    assert values(by_time) == expected(30, 40)


def test_filters_reach_the_source_where_push_down_is_on(spark: SparkSession, node: Node) -> None:
    topic = node.create("pushed")
    node.write(topic, 40)
    frame = read(spark, node, subscribe=topic).load().where("offset >= 5 and offset < 7 and partition = 1")
    assert values(frame) == ["v11", "v13"]
    assert ">= 5" in plan(frame)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = (
            read(spark, node, subscribe=topic).load().where("offset >= 5 and offset < 7 and partition = 1")
        )
        assert values(frame) == ["v11", "v13"]
        assert "Filter" not in plan(frame)  # Spark has nothing left to do
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_read_that_comes_to_nothing_gives_no_rows(spark: SparkSession, node: Node) -> None:
    """Spark makes one task without a range of it."""
    empty, half = node.create("nothing"), node.create("half")
    node.write(half, 6, partitions=1)
    assert read(spark, node).load(empty).count() == 0
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition in ("partition = 1", "offset > 1000", "topic = 'another'"):
            assert read(spark, node, subscribe=half).load().where(condition).collect() == [], condition
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, node: Node, tmp_path: Path) -> None:
    topic = node.create("stream")
    node.write(topic, 30)

    def run(limit: str | None) -> list[dict[str, Any]]:
        reader = (
            spark.readStream.format("ropewalk").option("bootstrap", node.bootstrap).option("subscribe", topic)
        )
        reader = reader.option("startingOffsets", "earliest")
        if limit is not None:
            reader = reader.option("maxOffsetsPerTrigger", limit)
        query = (
            reader.load()
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "rows"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        return [dict(progress) for progress in query.recentProgress if progress["numInputRows"]]

    batches = patiently(lambda: run("10"))
    assert [progress["numInputRows"] for progress in batches] == [10, 10, 10]
    reached = [json.loads(progress["sources"][0]["endOffset"]) for progress in batches]
    assert [each[topic] for each in reached] == [{"0": count, "1": count} for count in (5, 10, 15)]
    assert {len(each[IDS][topic]) for each in reached} == {22}, "which topic these are offsets of"
    ends = [json.loads(progress["sources"][0]["latestOffset"]) for progress in batches]
    assert ends == [{topic: {"0": 15, "1": 15}}] * 3  # what is between the two is the lag, by partition
    node.write(topic, 4, first=30)
    patiently(lambda: run(None))
    assert values(spark.read.parquet(str(tmp_path / "rows"))) == expected(0, 34)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "nowhere"}, "there is no nowhere"),
        ({}, "one of subscribe, subscribePattern and assign"),
        ({"subscribe": "bad", "startingOffsets": "soon"}, "must be JSON"),
        ({"subscribe": "bad", "isolation": "none"}, "read_committed or read_uncommitted"),
        ({"subscribe": "bad", "startingOffset": "earliest"}, "(?i)unknown option: startingOffset"),
        ({"subscribe": "bad", "kafka.security.protocol": "SSL"}, "it may not speak TLS there"),
        ({"subscribe": "bad", "startingOffsets": '{"bad": {"0": 90000}}'}, "failOnDataLoss=false"),
    ],
)
def test_wrong_use_is_told_clearly(
    spark: SparkSession, node: Node, options: dict[str, str], message: str
) -> None:
    if options.get("subscribe") == "bad" and not hasattr(node, "has_bad"):
        node.create("bad")
        node.write("bad", 2)
        node.has_bad = True  # type: ignore[attr-defined]
    with pytest.raises(PySparkException, match=message):
        read(spark, node, **options).load().collect()


def test_the_source_is_found_under_its_name() -> None:
    from pyspark_ropewalk import DefaultSource

    assert DefaultSource is RopewalkSource
    assert RopewalkSource.name() == "ropewalk"
    assert TopicPartition("t", 0)
