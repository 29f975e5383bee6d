"""Beyond one process: a standalone cluster and a Connect server read topics, and archive them as `local[*]` does, more in one batch than
the driver has memory included. Delta's own Spark reads the table.

What `local[*]` makes of the same records is held against the same rows in `test_pipeline_process.py`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from confluent_kafka import Producer
from deltalake import DeltaTable

from bench.brokers import Unavailable
from bench.spark_jars import DELTA, fetch
from tests.spark.conftest import Node, needs_java, rows_of
from tests.spark.spark_daemons import DRIVER_MEGABYTES, ENVIRONMENT, SETTINGS, start_cluster, start_connect

pytestmark = [needs_java, pytest.mark.compat, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
COUNT = 400
VALUE_BYTES = 4096
LARGE_COUNT = (DRIVER_MEGABYTES << 20) * 5 // 4 // VALUE_BYTES
STARTS_MAX = 3
PATIENCE_S = 200


@pytest.fixture
def daemons() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def topic(node: Node) -> str:
    name = node.create("everywhere")
    node.write(name, COUNT)
    return name


def run_python(*arguments: str) -> str:
    """Started again, as it asks to be, where Spark did not wait for a worker of its own on a busy machine."""
    for _ in range(STARTS_MAX):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        if done.returncode == 0 or "start the job again" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def archive(node: Node, topic: str, directory: Path, *where: str) -> None:
    run_python(
        *("-m", "ropewalk.spark", "run", "archive", "--once", "--name", "everywhere"),
        *("--bootstrap", node.bootstrap, "--topic", topic, "--to", str(directory / "table")),
        *("--state", str(directory / "state"), *where),
    )


def test_a_standalone_cluster_archives_as_one_machine_does(
    daemons: ExitStack, node: Node, topic: str, tmp_path: Path
) -> None:
    master = start_cluster(daemons, tmp_path)
    settings = [word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    archive(node, topic, tmp_path, "--master", master, *settings)
    assert rows_of(tmp_path / "table") == node.archived(topic, COUNT)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Connect server, which is the driver of whatever it is asked."""
    with ExitStack() as stack:
        yield start_connect(stack, tmp_path_factory.mktemp("connect"))


def test_a_connect_server_reads_and_archives_as_one_machine_does(
    remote: str, node: Node, topic: str, tmp_path: Path
) -> None:
    read = run_python("-m", "tests.spark.read_elsewhere", "--remote", remote, node.bootstrap, topic)
    assert json.loads(read) == sorted([f"v{number}", number % 2, number // 2] for number in range(COUNT))
    archive(node, topic, tmp_path, "--remote", remote)
    assert rows_of(tmp_path / "table") == node.archived(topic, COUNT)


@pytest.fixture(scope="module")
def large(remote: str, node: Node, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that one run has made in one batch, larger than its driver's memory. Every other record has a header."""
    topic, place = node.create("large"), tmp_path_factory.mktemp("large")
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 20, "compression.type": "zstd"})
    noise = os.urandom(VALUE_BYTES * 64)
    for number in range(LARGE_COUNT):
        start = number * 61 % (len(noise) - VALUE_BYTES)
        producer.produce(
            topic,
            b"%08d" % number + noise[start : start + VALUE_BYTES - 8],
            partition=number % 2,
            headers=[("n", b"1")] if number % 4 < 2 else None,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    archive(node, topic, place, "--remote", remote)
    return place / "table"


def test_a_batch_larger_than_the_drivers_memory(large: Path) -> None:
    table = DeltaTable(str(large))
    commits = [each for each in table.history() if each["operation"] == "WRITE"]
    assert len(commits) == 1  # it was one batch
    numbers = []
    for rows in table.to_pyarrow_dataset().to_batches(columns=["value"], batch_size=5000):
        assert all(len(value) == VALUE_BYTES for value in rows["value"].to_pylist())
        numbers += [int(value[:8]) for value in rows["value"].to_pylist()]
    assert sorted(numbers) == list(range(LARGE_COUNT))


_READ = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.jars", sys.argv[1])
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.databricks.delta.snapshotPartitions", "2")
builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
rows = builder.getOrCreate().read.format("delta").load(sys.argv[2])
counted = rows.where("offset >= 5").selectExpr("count(*)", "min(offset)", "max(offset)", "count(headers)").first()
print(json.dumps([rows.count(), *counted, dict(rows.dtypes)["headers"]]))
"""


def test_deltas_own_spark_reads_the_table(large: Path) -> None:
    try:
        jars = fetch(*DELTA)
    except Unavailable as error:
        pytest.skip(f"optional: {error}")
    told = run_python("-c", _READ, jars, str(large))
    each = LARGE_COUNT // 2
    assert json.loads(told.splitlines()[-1]) == [
        LARGE_COUNT, LARGE_COUNT - 2 * 5, 5, each - 1, (LARGE_COUNT - 2 * 5) // 2 - 1, "array<struct<key:string,value:binary>>"
    ]  # fmt: skip
