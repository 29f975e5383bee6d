"""What the page about transforms shows is done as it stands: its commands, then the job of its file, twice."""

import io
import json
import re
import shlex
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")

from ropewalk.spark.__main__ import _given, _parser
from ropewalk.spark.pipelines.catalogue import pipeline
from ropewalk.spark.pipelines.definition import Job, Table, define, parse_file
from ropewalk.spark.pipelines.running import Report, Watching, carry_out
from ropewalk.spark.pipelines.showing import Showing
from ropewalk.spark.pipelines.status import State
from ropewalk.spark.pipelines.transform_settings import TransformSettings
from tests.spark.conftest import Node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[3] / "docs/guides/pipeline-transform.md"
MORNING = datetime.now(UTC).replace(hour=9, minute=0, second=0, microsecond=0) - timedelta(days=1)

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def settings_of(kind: str) -> Any:
    return pipeline(kind).Settings


def carried_out(job: Job, spark: "SparkSession", directory: Path) -> State:
    report = Report(job, Watching(state_directory=str(directory)), None)
    with Showing(job.name, io.StringIO()) as showing:
        return carry_out(job, pipeline(job.kind), spark, report, showing)


def sell(node: Node, first: int, end: int) -> None:
    """Every ten seconds a rope, and then some tar."""
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in range(first, end):
        sale = {
            "item": ("rope", "tar")[number % 2],
            "amount": float(number),
            "at": (MORNING + timedelta(seconds=10 * number)).isoformat(),
        }
        producer.produce("sales", json.dumps(sale), partition=number % 2)
    assert producer.flush(30) == 0


def values(spark: "SparkSession", node: Node, topic: str) -> list[tuple[str, dict[str, Any]]]:
    reader = spark.read.format("ropewalk").option("bootstrap", node.bootstrap).option("subscribe", topic)
    return [(row.key.decode(), json.loads(row.value)) for row in reader.load().collect()]


def test_commands_and_the_file_of_the_page(
    spark: "SparkSession", node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (shown,) = blocks("sh")
    *creations, command = shown.splitlines()
    for creation in creations:
        topic, flag, count = shlex.split(creation.removeprefix("./run topic create "))
        assert flag == "--partitions"
        node.create(topic, int(count))
    sell(node, 0, 130)
    options, words = _parser().parse_known_args(shlex.split(command.removeprefix("./run pipeline ")))
    job = define(options.name, {}, _given(options), words, settings_of=settings_of, bootstrap=node.bootstrap)
    assert carried_out(job, spark, tmp_path) is State.ENDED
    large = values(spark, node, "large_sales")
    assert sorted((value["amount"], key) for key, value in large) == [
        (float(number), ("rope", "tar")[number % 2]) for number in range(101, 130)
    ]

    node.create("orders_per_minute")
    (text,) = blocks("toml")
    jobs = parse_file(text.replace("127.0.0.1:9092", node.bootstrap), "the page")
    counting = define("orders-per-minute", jobs, Table(once=True), settings_of=settings_of)
    assert carried_out(counting, spark, tmp_path) is State.ENDED
    sell(node, 130, 200)
    assert carried_out(counting, spark, tmp_path) is State.ENDED
    told = values(spark, node, "orders_per_minute")
    orders = Counter({(value["minute"], key): value["orders"] for key, value in told})
    assert len(orders) == len(told), "each minute and item is told once"
    # Six orders a minute. A minute is told when an order came that is one minute younger than its end.
    assert list(orders.values()) == [3] * 2 * ((199 * 10 - 60) // 60)
    assert {tuple(value) for _, value in told} == {("minute", "item", "orders", "amount")}


def test_the_page_names_settings_that_there_are() -> None:
    page = PAGE.read_text()
    for name in ("sql", "sql_file", "to_topic", "to", "table", "fields", "mode", "watermark", "tasks"):
        assert name in TransformSettings.__struct_fields__
        assert f"`{name}`" in page
