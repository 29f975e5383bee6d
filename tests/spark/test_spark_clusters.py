"""Beyond one machine's process: a standalone cluster and a Connect server read and archive topics as `local[*]` does."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.spark.conftest import Node
from tests.spark.spark_daemons import ENVIRONMENT, start_cluster, start_connect

pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
COUNT = 400
PATIENCE_S = 150


@pytest.fixture
def daemons() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


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


def expected() -> list[list[object]]:
    return sorted([f"v{number}", number % 2, number // 2] for number in range(COUNT))


def test_a_standalone_cluster_reads_a_topic(daemons: ExitStack, node: Node, tmp_path: Path) -> None:
    topic = node.create("standalone")
    node.write(topic, COUNT)
    master = start_cluster(daemons, tmp_path)
    found = run_python("-m", "tests.spark.read_elsewhere", "--master", master, node.bootstrap, topic)
    assert json.loads(found) == expected()


def test_a_connect_server_reads_a_topic(daemons: ExitStack, node: Node, tmp_path: Path) -> None:
    topic = node.create("connected")
    node.write(topic, COUNT)
    remote = start_connect(daemons, tmp_path)
    found = run_python("-m", "tests.spark.read_elsewhere", "--remote", remote, node.bootstrap, topic)
    assert json.loads(found) == expected()
