"""What the page about archives shows is done as it stands: its commands one after the other, in one directory, then its programs."""

import io
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

from confluent_kafka import Producer

from ropewalk.spark.__main__ import _given, _parser
from ropewalk.spark.pipelines.archive import ArchiveSettings
from ropewalk.spark.pipelines.catalogue import pipeline
from ropewalk.spark.pipelines.definition import Job, define, parse_file
from ropewalk.spark.pipelines.running import Report, Watching, carry_out
from ropewalk.spark.pipelines.showing import Showing
from ropewalk.spark.pipelines.status import State
from tests.spark.conftest import Node
from tests.spark.session.test_spark_pages import carried_out, programs, promised

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/guides/pipeline-archive.md"

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def job_of(command: str, bootstrap: str) -> Job:
    words = shlex.split(command.removeprefix("./run pipeline "))
    options, settings = _parser().parse_known_args(words)
    return define(
        options.name,
        {},
        _given(options),
        settings,
        name=options.job_name,
        settings_of=lambda kind: pipeline(kind).Settings,
        bootstrap=bootstrap,
    )


def test_commands_and_programs_of_the_page(
    spark: "SparkSession", node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    node.create("demo")
    node.write("demo", 20)
    node.create("orders")
    producer = Producer({"bootstrap.servers": node.bootstrap})
    producer.produce("orders", b'{"id": 1, "amount": "12.50"}')
    producer.produce("orders", b'{"id": "two"}')
    assert producer.flush(30) == 0
    (schema,) = blocks("json")
    Path("order.json").write_text(schema)
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) >= 4
    for command in commands:
        job = job_of(command, node.bootstrap)
        watching = Watching(state_directory=str(tmp_path))
        with Showing(job.name, io.StringIO()) as showing:
            done = carry_out(job, pipeline(job.kind), spark, Report(job, watching, None), showing)
        assert done is State.ENDED
    names: dict[str, Any] = {}
    for program in programs(PAGE):
        assert carried_out(program, names) == promised(program)
    assert names["rows"].num_rows == 20
    assert spark.read.parquet(str(tmp_path / "files")).count() == 20


def test_the_file_of_the_page_is_a_job() -> None:
    (text,) = blocks("toml")
    tables = parse_file(text, "the page")
    job = define("orders", tables, tables["orders"], settings_of=lambda kind: pipeline(kind).Settings)
    assert isinstance(job.settings, ArchiveSettings)
    assert (job.settings.partition_by, job.settings.keep_snapshots_hours) == ("hour", 72)


def test_the_page_tells_of_every_setting_or_where_they_are() -> None:
    page = PAGE.read_text()
    assert "pipeline describe archive" in page
    for name in ("upkeep_batches", "compact_small_files", "file_bytes_target", "keep_snapshots_hours"):
        assert name in ArchiveSettings.__struct_fields__
        assert f"`{name}`" in page
