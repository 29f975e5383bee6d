"""SQL over topics by Spark itself: every row once, whatever the batches were and whatever came in between."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

pyspark = pytest.importorskip("pyspark")

import pyarrow as pa  # noqa: E402
from deltalake import DeltaTable  # noqa: E402
from pyspark import TaskContext  # noqa: E402
from pyspark.errors import StreamingQueryException  # noqa: E402
from pyspark.sql import DataFrame, SparkSession  # noqa: E402

from ropewalk.spark.figures import Figures  # noqa: E402
from ropewalk.spark.pipelines.outputs import Batch, TopicOutput  # noqa: E402
from ropewalk.spark.pipelines.pipeline import Work  # noqa: E402
from ropewalk.spark.pipelines.settings import read_settings  # noqa: E402
from ropewalk.spark.pipelines.transform import Transform  # noqa: E402
from ropewalk.spark.refusals import ReplayDiffers, WrongUse  # noqa: E402
from ropewalk.spark.sink.incoming import check_columns  # noqa: E402
from ropewalk.spark.sink.options import parse_sink  # noqa: E402
from ropewalk.spark.sink.transaction import write_once  # noqa: E402
from tests.spark.conftest import Node  # noqa: E402

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

FIELDS = "item string, n int, at timestamp"
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
ITEMS = ("rope", "tar", "hemp")


class Shop:
    """A job, the topics that it reads, and the directory in which it leaves everything."""

    def __init__(self, spark: SparkSession, node: Node, directory: Path, **config: str) -> None:
        self.spark, self.node, self.directory = spark, node, directory
        self.orders = node.create(f"{directory.name}-orders", 2, **config)
        self.checkpoint = directory / "checkpoint"
        self._producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 5})

    def order(self, first: int, end: int) -> None:
        """One each second from noon."""
        for number in range(first, end):
            at = (NOON + timedelta(seconds=number)).isoformat()
            order = {"item": ITEMS[number % 3], "n": number, "at": at}
            self._producer.produce(self.orders, json.dumps(order), key=str(number), partition=number % 2)
        assert self._producer.flush(30) == 0

    def work(self, *, source: dict[str, str] | None = None, **settings: Any) -> Work:
        given = {"fields": FIELDS, "views": {"orders": self.orders}, **settings}
        return Work(
            spark=self.spark,
            name=self.directory.name,
            bootstrap=self.node.bootstrap,
            source={"subscribe": self.orders, "startingOffsets": "earliest", **(source or {})},
            checkpoint=str(self.checkpoint),
            once=True,
            interval="1 second",
            settings=read_settings(Transform.Settings, given, "transform"),
        )

    def run(self, **settings: Any) -> None:
        work = self.work(**settings)
        query = Transform.start(work).query
        assert query.awaitTermination(240)
        error = query.exception()
        if error is not None:
            raise error
        Transform.finish(work)

    def forget_the_last_commit(self) -> None:
        """As if Spark had died after the output was written and before it knew."""
        last = max((self.checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)

    def lose_the_checkpoint(self) -> None:
        shutil.rmtree(self.checkpoint)


@pytest.fixture
def shop(spark: SparkSession, node: Node, tmp_path: Path) -> Shop:
    return Shop(spark, node, tmp_path)


def rows(table: Path) -> list[dict[str, Any]]:
    return list(DeltaTable(str(table)).to_pyarrow_table().to_pylist())


def test_rows_in_a_table_once_after_a_replay_and_after_a_lost_checkpoint(shop: Shop) -> None:
    table = shop.directory / "table"
    job: dict[str, Any] = {
        "to": str(table),
        "sql": "SELECT n, item FROM orders WHERE n % 2 = 0 UNION ALL SELECT -n, item FROM orders WHERE n % 4 = 1",
    }
    shop.order(0, 100)
    shop.run(source={"maxOffsetsPerTrigger": "60"}, **job)
    shop.forget_the_last_commit()
    shop.order(100, 140)
    shop.run(source={"minPartitions": "5"}, **job)
    shop.lose_the_checkpoint()
    shop.order(140, 200)
    shop.run(source={"maxOffsetsPerTrigger": "33"}, **job)
    expected = [n if n % 2 == 0 else -n for n in range(200) if n % 2 == 0 or n % 4 == 1]
    assert sorted(row["n"] for row in rows(table)) == sorted(expected)
    with pytest.raises(WrongUse, match="made with another sql"):
        Transform.start(shop.work(to=str(table), sql="SELECT n FROM orders"))


def test_windows_are_counted_once_over_restarts_and_not_made_up_without_state(shop: Shop) -> None:
    table = shop.directory / "table"
    job: dict[str, Any] = {
        "to": str(table),
        "watermark": "at 30 seconds",
        "sql": "SELECT window.start AS minute, item, count(*) AS orders FROM orders GROUP BY window(at, '1 minute'), item",
    }
    shop.order(0, 200)
    shop.run(source={"maxOffsetsPerTrigger": "90"}, **job)
    shop.forget_the_last_commit()
    shop.order(200, 400)
    shop.run(**job)
    counted = Counter({(row["minute"], row["item"]): row["orders"] for row in rows(table)})
    assert len(counted) == len(rows(table))
    closed = 399 - 30
    expected = Counter(
        (NOON + timedelta(minutes=n // 60), ITEMS[n % 3]) for n in range(400) if (n // 60 + 1) * 60 <= closed
    )
    assert counted == expected
    shop.lose_the_checkpoint()
    with pytest.raises(ReplayDiffers, match="the checkpoint is lost"):
        Transform.start(shop.work(**job))


def records(shop: Shop, topic: str) -> list[tuple[str, dict[str, Any]]]:
    """Those that are committed."""
    frame = (
        shop.spark.read.format("ropewalk").option("bootstrap", shop.node.bootstrap).option("subscribe", topic)
    )
    found = frame.schema("key binary, value binary").load().collect()
    return [(bytes(row.key).decode(), json.loads(bytes(row.value))) for row in found]


def test_rows_in_a_topic_once_after_a_lost_checkpoint_and_after_a_replay(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was half written when the checkpoint was lost is finished before anything else is read."""
    topic = shop.node.create(f"{shop.orders}-even")
    job: dict[str, Any] = {
        "to_topic": topic,
        "tasks": 2,
        "sql": "SELECT cast(n AS string) AS key, n, item FROM orders WHERE n % 2 = 0",
    }
    shop.order(0, 60)
    with monkeypatch.context() as dying:
        dying.setattr(TopicOutput, "write", write_the_first_task_and_die)
        with pytest.raises(StreamingQueryException, match="died after its first task"):
            shop.run(**job)
    assert 0 < len(records(shop, topic)) < 30
    shop.lose_the_checkpoint()
    shop.order(60, 100)
    shop.run(source={"maxOffsetsPerTrigger": "33"}, **job)
    shop.forget_the_last_commit()
    shop.order(100, 140)
    shop.run(source={"minPartitions": "5"}, **job)
    assert sorted((value["n"], key, value["item"]) for key, value in records(shop, topic)) == [
        (n, str(n), ITEMS[n % 3]) for n in range(0, 140, 2)
    ]
    with pytest.raises(WrongUse, match="would read what it writes"):
        Transform.start(shop.work(**{**job, "to_topic": shop.orders}))


def write_the_first_task_and_die(
    output: TopicOutput, rows: DataFrame, batch: Batch, _beside: Figures
) -> None:
    placed = output.placed(rows)
    options = parse_sink(output.options(batch), streaming=False)
    columns = check_columns(placed.schema, output.topic)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0:
            write_once(options, columns, batches, task=0, query=batch.query, batch=batch.number)
        yield from ()

    assert placed.mapInArrow(write, "nothing int").collect() == []
    raise RuntimeError("died after its first task")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"to": "x"}, "sql or as sql_file"),
        ({"sql": "SELECT 1"}, "to_topic or to"),
        ({"sql": "SELECT n FROM orders", "to": "x", "mode": "update"}, "send updates to a topic"),
        ({"sql": "SELECT n FROM orders", "to": "x", "mode": "complete"}, "must be append or update"),
        ({"sql": "SELECT n FROM orders", "to": "x", "watermark": "at"}, "a column and a delay"),
        ({"sql": "SELECT n FROM orders", "to": "x", "views": {"a": "b"}}, "views name b"),
        ({"sql": "SELECT n FROM orders", "to_topic": "t", "tasks": 0}, "at least 1"),
        ({"sql": "SELECT n FROM orders", "to_topic": "t", "key": "k"}, "key is 'k', and the SQL gives n"),
        ({"sql": "SELECT n, n FROM orders", "to_topic": "t"}, "gives n twice"),
        ({"sql": "SELECT 1 AS n", "to_topic": "t"}, "reads none of the job's topics"),
        ({"sql": "SELECT uuid() AS key, n FROM orders", "to_topic": "t"}, r"uses uuid\(\)"),
        ({"sql": "SELECT key FROM orders", "to_topic": "t"}, "a key and nothing else"),
        ({"sql": "SELECT n FROM orders", "to_topic": "t"}, "there is no topic t to write to"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_read(
    shop: Shop, settings: dict[str, Any], message: str
) -> None:
    if settings.get("to"):
        settings = {**settings, "to": str(shop.directory / "table")}
    with pytest.raises(WrongUse, match=message):
        Transform.start(shop.work(**settings))
    assert not (shop.directory / "table").exists()
