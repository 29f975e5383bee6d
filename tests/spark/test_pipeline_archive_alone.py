"""Archives in processes of their own: more records in one batch than the driver has memory, and Delta's own Spark reading the table."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from confluent_kafka import Producer
from deltalake import DeltaTable

from bench.brokers import Unavailable
from bench.spark_jars import DELTA, fetch
from tests.spark.conftest import Node

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.timeout(400)]

VALUE_BYTES = 4096
DRIVER_MEGABYTES = 512


def archive(bootstrap: str, topic: str, lake: Path, *words: str) -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or newer")
    command = [sys.executable, "-m", "ropewalk.spark", "run", "archive", "--topic", topic, "--to", str(lake)]
    done = subprocess.run(
        [*command, "--bootstrap", bootstrap, "--once", "--state", str(lake.parent / "state"), *words],
        capture_output=True,
        text=True,
        timeout=360,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_batch_larger_than_the_drivers_memory(node: Node, tmp_path: Path) -> None:
    topic = node.create("large")
    count = (DRIVER_MEGABYTES << 20) * 5 // 4 // VALUE_BYTES
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 20, "compression.type": "zstd"})
    noise = os.urandom(VALUE_BYTES * 64)
    for number in range(count):
        start = number * 61 % (len(noise) - VALUE_BYTES)
        producer.produce(
            topic, b"%08d" % number + noise[start : start + VALUE_BYTES - 8], partition=number % 2
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    lake = tmp_path / "lake"
    archive(node.bootstrap, topic, lake, "--conf", f"spark.driver.memory={DRIVER_MEGABYTES}m")
    table = DeltaTable(str(lake))
    commits = [each for each in table.history() if each["operation"] == "WRITE"]
    assert len(commits) == 1  # it was one batch
    numbers = []
    for rows in table.to_pyarrow_dataset().to_batches(columns=["value"], batch_size=5000):
        assert all(len(value) == VALUE_BYTES for value in rows["value"].to_pylist())
        numbers += [int(value[:8]) for value in rows["value"].to_pylist()]
    assert sorted(numbers) == list(range(count))


_READ = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars", sys.argv[1])
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
rows = builder.getOrCreate().read.format("delta").load(sys.argv[2])
counted = rows.where("offset >= 5").selectExpr("count(*)", "min(offset)", "max(offset)", "count(headers)").first()
print(json.dumps([rows.count(), *counted, dict(rows.dtypes)["headers"]]))
"""


def test_deltas_own_spark_reads_the_table(node: Node, tmp_path: Path) -> None:
    try:
        jars = fetch(*DELTA)
    except Unavailable as error:
        pytest.skip(f"optional: {error}")
    topic, lake = node.create("foreign"), tmp_path / "lake"
    node.write(topic, 40)
    archive(node.bootstrap, topic, lake)
    done = subprocess.run(
        [sys.executable, "-c", _READ, jars, str(lake)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        40, 30, 5, 19, 15, "array<struct<key:string,value:binary>>"
    ]  # fmt: skip
