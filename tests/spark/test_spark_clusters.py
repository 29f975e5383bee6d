"""Beyond one process: a standalone cluster and a Connect server read topics, and archive them as `local[*]` does."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ropewalk.spark.pipelines.archive import Archive, ArchiveSettings
from ropewalk.spark.pipelines.pipeline import Work
from tests.spark.conftest import Node
from tests.spark.spark_daemons import ENVIRONMENT, SETTINGS, start_cluster, start_connect

pytestmark = [pytest.mark.compat, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
COUNT = 400
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


@pytest.fixture(scope="module")
def on_this_machine(
    spark: SparkSession, node: Node, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """What the table holds that a session without any cluster has written."""
    directory = tmp_path_factory.mktemp("local")
    work = Work(
        spark=spark,
        name="everywhere",
        bootstrap=node.bootstrap,
        source={"subscribe": topic, "startingOffsets": "earliest"},
        checkpoint=str(directory / "checkpoint"),
        once=True,
        interval="1 second",
        settings=ArchiveSettings(to=str(directory / "table")),
    )
    assert Archive.start(work).awaitTermination(PATIENCE_S)
    rows = rows_of(directory / "table")
    assert len(rows) == COUNT
    return rows


def rows_of(table: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(str(table)).to_pyarrow_dataset().to_table().to_pylist()
    return sorted(found, key=lambda row: (row["partition"], row["offset"]))


def run_python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def archive(node: Node, topic: str, directory: Path, *where: str) -> list[dict[str, Any]]:
    run_python(
        *("-m", "ropewalk.spark", "run", "archive", "--once", "--name", "everywhere"),
        *("--bootstrap", node.bootstrap, "--topic", topic, "--to", str(directory / "table")),
        *("--state", str(directory / "state"), *where),
    )
    return rows_of(directory / "table")


def test_a_standalone_cluster_archives_as_one_machine_does(
    daemons: ExitStack, node: Node, topic: str, on_this_machine: list[dict[str, Any]], tmp_path: Path
) -> None:
    master = start_cluster(daemons, tmp_path)
    settings = [word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    assert archive(node, topic, tmp_path, "--master", master, *settings) == on_this_machine


def test_a_connect_server_reads_and_archives_as_one_machine_does(
    daemons: ExitStack, node: Node, topic: str, on_this_machine: list[dict[str, Any]], tmp_path: Path
) -> None:
    remote = start_connect(daemons, tmp_path)
    read = run_python("-m", "tests.spark.read_elsewhere", "--remote", remote, node.bootstrap, topic)
    assert json.loads(read) == sorted([f"v{number}", number % 2, number // 2] for number in range(COUNT))
    assert archive(node, topic, tmp_path, "--remote", remote) == on_this_machine
