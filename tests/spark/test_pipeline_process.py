"""The commands of the guide to pipelines, as processes of their own on a node that holds a topic `demo`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk.testing import Cluster
from tests.spark.conftest import Node, needs_java, rows_of

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/pipelines.md").read_text()
COMMANDS = [
    line.partition("#")[0].split()
    for block in re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]


class Shell:
    """Where a user stands who tries the guide: a directory, a node, and Java."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        self._directory = directory
        self._environment = {
            **os.environ,
            "ROPEWALK_BOOTSTRAP": bootstrap,
            "XDG_STATE_HOME": str(directory / "state"),
        }

    def call(self, *words: str) -> str:
        """What it printed. `./run` is what makes the environment, which is there; the rest is as the guide has it."""
        program, *arguments = words
        assert program == "./run"
        done = subprocess.run(
            [sys.executable, "-m", "ropewalk", *arguments],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@needs_java
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_guide_works_and_a_topic_is_in_the_table_once(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    deltalake = pytest.importorskip("deltalake")
    parquet = pytest.importorskip("pyarrow.parquet")
    with Cluster() as cluster:
        node = Node(cluster.bootstrap)
        topic = node.create("demo")
        node.write(topic, 500)
        shell = Shell(tmp_path, cluster.bootstrap)
        archive, *others = COMMANDS
        assert archive[2:4] == ["run", "archive"]
        assert "demo" in archive
        assert "archive: ended, 500 rows read, 500 written in 1 batch" in shell.call(*archive)
        for command in others:
            assert "archive" in shell.call(*command)
        table = deltalake.DeltaTable(str(tmp_path / "lake"))
        assert rows_of(tmp_path / "lake") == node.archived(topic, 500)

        node.write(topic, 7, first=500)
        told = shell.call(*archive, "--ui")
        assert "archive: ended, 7 rows read, 7 written in 1 batch" in told
        assert re.search(r"^archive: Spark's pages are at http://127\.0\.0\.1:\d+$", told, re.MULTILINE)
        here = ["./run", "pipeline", "status", "-o", "json"]
        elsewhere = [*here, "--state", "elsewhere", "-b", cluster.bootstrap]
        for asked in (here, elsewhere):
            (status,) = json.loads(shell.call(*asked))
            assert (status["state"], status["progress"]["lag"]) == ("ended", 0)
            assert status["progress"]["written_rows"] == 7

    assert rows_of(tmp_path / "lake") == node.archived(topic, 507)
    table.update_incremental()
    lake = table.to_pyarrow_dataset()
    assert duckdb.sql('SELECT count(*), count(DISTINCT (partition, "offset")) FROM lake').fetchall() == [
        (507, 507)
    ]
    files = [parquet.ParquetFile(path).metadata.num_rows for path in table.file_uris()]
    assert sum(files) == 507
    assert lake.count_rows() == 507
