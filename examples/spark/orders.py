"""Orders in Spark, in five minutes: SQL over a topic, a stream, a table in the lake, and counts per minute, all exactly once.

    python examples/spark/orders.py                  # with a node of its own, in this process
    python examples/spark/orders.py 127.0.0.1:9092   # with a node that runs

Needs the extra `ropewalk[spark]` and Java 17 or newer.
"""

import json
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ropewalk import Admin, Producer
from ropewalk.spark import archive, transform
from ropewalk.testing import Cluster

ORDERS, PER_MINUTE = "example_orders", "example_orders_per_minute"
FIELDS = "item string, amount double, at timestamp"
OPENING = datetime.now(UTC).replace(hour=10, minute=0, second=0, microsecond=0)


def main(bootstrap: str, spark: SparkSession, directory: Path) -> None:
    create(bootstrap)
    produce(bootstrap, count=600)

    lake = directory / "lake"
    # `ropewalk pipeline run archive --once --topic example_orders --to LAKE` does the same.
    archive(spark, bootstrap=bootstrap, topics=ORDERS, to=lake, once=True).awaitTermination()
    print(f"orders in the lake: {DeltaTable(str(lake)).to_pyarrow_table().num_rows}")

    count_per_minute(spark, bootstrap, directory / "counts").awaitTermination()
    print(f"counts in {PER_MINUTE}: {told(spark, bootstrap).count()}")

    print("by item, from the topic as it is:")
    orders = read(spark, bootstrap, ORDERS).selectExpr(f"from_json(cast(value AS string), '{FIELDS}') AS o")
    orders.select("o.*").createOrReplaceTempView("orders_so_far")
    by_item = "SELECT item, count(*) AS orders, sum(amount) AS amount FROM orders_so_far GROUP BY item ORDER BY item"
    spark.sql(by_item).show()

    print("by minute and item, from the topic that the transform writes:")
    told(spark, bootstrap).sort("minute", "item").show(6, truncate=False)


def create(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        for topic in (ORDERS, PER_MINUTE):
            admin.create_topic(topic, partitions=2)


def produce(bootstrap: str, *, count: int) -> None:
    """An order every second."""
    with Producer(bootstrap) as producer:
        for number in range(count):
            item = ("rope", "tar", "hemp")[number % 3]
            order = {
                "item": item,
                "amount": number % 10,
                "at": (OPENING + timedelta(seconds=number)).isoformat(),
            }
            producer.send(ORDERS, json.dumps(order).encode(), key=item.encode())


def read(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    return spark.read.format("ropewalk").option("bootstrap", bootstrap).option("subscribe", topic).load()


def count_per_minute(spark: SparkSession, bootstrap: str, counts: Path) -> StreamingQuery:
    """Counts of a minute are told when the watermark has passed its end."""
    return transform(
        spark,
        name="example-orders-per-minute",
        bootstrap=bootstrap,
        topics=ORDERS,
        checkpoint=counts,
        once=True,
        to_topic=PER_MINUTE,
        tasks=2,
        key="item",
        fields=FIELDS,
        watermark="at 30 seconds",
        sql=f"""
            SELECT window.start AS minute, item, count(*) AS orders, sum(amount) AS amount
            FROM {ORDERS} GROUP BY window(at, '1 minute'), item
        """,
    )


def told(spark: SparkSession, bootstrap: str) -> DataFrame:
    fields = "minute timestamp, item string, orders long, amount double"
    records = read(spark, bootstrap, PER_MINUTE)
    return records.selectExpr(f"from_json(cast(value AS string), '{fields}') AS o").select("o.*")


def with_spark(bootstrap: str) -> None:
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as directory:
        main(bootstrap, spark, Path(directory))
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with_spark(sys.argv[1])
    else:
        with Cluster() as cluster:
            with_spark(cluster.bootstrap)
