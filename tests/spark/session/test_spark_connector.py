"""Spark's own Kafka connector on a node of ours, where Maven is: what works with Kafka goes on working."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from bench.brokers import Unavailable
from bench.spark_jars import CONNECTOR, fetch
from tests.spark.conftest import Node

pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]

COUNT = 60


@pytest.fixture(scope="module")
def with_connector(spark: SparkSession) -> SparkSession:
    """The session that all tests share, and the connector beside our source in it."""
    try:
        jars = fetch(*CONNECTOR)
    except Unavailable as missing:
        pytest.skip(f"optional: {missing}")
    for jar in jars.split(","):
        spark.sql(f"ADD JAR '{jar}'")
    return spark


def expected() -> list[tuple[str, str]]:
    return sorted((f"k{number}", f"v{number}") for number in range(COUNT))


def test_the_connector_writes_and_reads_a_topic(
    with_connector: SparkSession, node: Node, tmp_path: Path
) -> None:
    spark = with_connector
    topic = node.create("connector")
    address = {"kafka.bootstrap.servers": node.bootstrap}
    rows = spark.range(COUNT).selectExpr("concat('k', id) as key", "concat('v', id) as value")
    rows.write.format("kafka").options(**address, topic=topic).save()

    read = spark.read.format("kafka").options(**address, subscribe=topic, startingOffsets="earliest").load()
    texts = read.selectExpr("cast(key as string)", "cast(value as string)")
    assert sorted(tuple(row) for row in texts.collect()) == expected()

    stream = spark.readStream.format("kafka").options(
        **address, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="25"
    )
    query = (
        stream.load()
        .selectExpr("cast(key as string)", "cast(value as string)")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "rows"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert sorted(tuple(row) for row in spark.read.parquet(str(tmp_path / "rows")).collect()) == expected()
    ours = spark.read.format("ropewalk").options(bootstrap=node.bootstrap, subscribe=topic).load()
    assert sorted(map(tuple, ours.collect()), key=str) == sorted(map(tuple, read.collect()), key=str)
