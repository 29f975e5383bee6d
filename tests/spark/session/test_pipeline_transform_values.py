"""Formats in transforms, by Spark itself: each record is counted in a window, set apart, or told to be late."""

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import fastavro
from confluent_kafka import Producer
from deltalake import DeltaTable
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from ropewalk.spark.figures import Figures
from ropewalk.spark.pipelines.definition import Job
from ropewalk.spark.pipelines.running import Report, Watching, carry_out
from ropewalk.spark.pipelines.settings import read_settings
from ropewalk.spark.pipelines.showing import Showing
from ropewalk.spark.pipelines.status import State, held, read_statuses
from ropewalk.spark.pipelines.transform import Transform
from ropewalk.spark.refusals import WrongUse
from tests.spark.conftest import Node
from tests.spark.fake_registry import fake_registry, framed
from tests.spark.session.test_pipeline_transform import Shop, rows, shop
from tests.spark.test_spark_lake_tables import iceberg_rows

__all__ = ["shop"]  # the fixture

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
COUNT = 300
EVERY = 100
"""One in a hundred is bad, and one in a hundred late."""
Encode = Callable[[int, datetime], bytes]


@contextmanager
def of_json(directory: Path, _topic: str) -> Iterator[tuple[dict[str, Any], Encode]]:
    path = directory / "order.json"
    fields = {"n": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}
    path.write_text(json.dumps({"type": "object", "required": ["n", "at"], "properties": fields}))
    yield (
        {"format": "json", "schema": str(path), "table": "delta"},
        lambda n, at: json.dumps({"n": n, "at": at.isoformat()}).encode(),
    )


@contextmanager
def of_avro(_directory: Path, topic: str) -> Iterator[tuple[dict[str, Any], Encode]]:
    when = {"type": "long", "logicalType": "timestamp-micros"}
    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "n", "type": "int"}, {"name": "at", "type": when}],
    }
    parsed = fastavro.parse_schema(schema)
    with fake_registry() as registry:
        number = registry.register(f"{topic}-value", schema)

        def encode(n: int, at: datetime) -> bytes:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, {"n": n, "at": at})
            return framed(number, out.getvalue())

        yield {"format": "avro", "registry": registry.url, "table": "iceberg"}, encode


@contextmanager
def of_protobuf(directory: Path, _topic: str) -> Iterator[tuple[dict[str, Any], Encode]]:
    file = descriptor_pb2.FileDescriptorProto(
        name="order.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    order = file.message_type.add(name="Order")
    kinds = descriptor_pb2.FieldDescriptorProto
    order.field.add(name="n", number=1, type=kinds.TYPE_INT32, label=1)
    order.field.add(
        name="at", number=2, type=kinds.TYPE_MESSAGE, label=1, type_name=".google.protobuf.Timestamp"
    )
    needed = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(needed)
    own = descriptor_pool.DescriptorPool()
    for each in (needed, file):
        own.Add(each)
    message = message_factory.GetMessageClass(own.FindMessageTypeByName("shop.Order"))
    path = directory / "order.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[needed, file]).SerializeToString())

    def encode(n: int, at: datetime) -> bytes:
        made = message(n=n)
        made.at.FromDatetime(at)
        return bytes(made.SerializeToString())

    yield {"format": "protobuf", "schema": str(path), "message": "shop.Order", "table": "delta"}, encode


def produce(node: Node, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("format_of", [of_json, of_avro, of_protobuf], ids=lambda each: each.__name__)
def test_good_bad_and_late_rows_add_up_to_what_was_produced(
    spark: SparkSession, node: Node, tmp_path: Path, format_of: Any
) -> None:
    topic = node.create(f"{tmp_path.name}-orders"[-60:], partitions=1)
    with format_of(tmp_path, topic) as (settings, encode):
        values = []
        for number in range(COUNT):
            late = number >= 2 * COUNT // 3 and number % (EVERY // 3) == 1
            bad = number % EVERY == 50
            at = NOON + timedelta(seconds=0 if late else number)
            values.append(b"\xff?" if bad else encode(number, at))
        late_count = len(
            [n for n in range(2 * COUNT // 3, COUNT) if n % (EVERY // 3) == 1 and n % EVERY != 50]
        )
        closing = encode(COUNT, NOON + timedelta(hours=1))
        produce(node, topic, [*values, closing])
        job = Job(
            name="counting",
            kind="transform",
            bootstrap=node.bootstrap,
            source={
                "subscribe": topic,
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": str(COUNT // 3 + 1),
            },
            checkpoint=str(tmp_path / "checkpoint"),
            once=True,
            interval="1 second",
            master="local[2]",
            remote=None,
            conf={},
            settings=read_settings(
                Transform.Settings,
                {
                    "to": str(tmp_path / "table"),
                    "views": {"orders": topic},
                    "watermark": "at 10 seconds",
                    "sql": "SELECT window.start AS minute, n % 2 AS odd, count(*) AS orders FROM orders"
                    " GROUP BY window(at, '1 minute'), n % 2",
                    "partition_by": ["odd"],
                    **settings,
                },
                "transform",
            ),
        )
        state = str(tmp_path / "state")
        watching = Watching(state_directory=state, metrics_file=str(tmp_path / "job.prom"))
        with held(state, job.name), Showing(job.name, io.StringIO()) as showing:
            ended = carry_out(job, Transform, spark, Report(job, watching, None), showing)
    assert ended is State.ENDED
    (status,) = read_statuses(state)
    told = status.progress
    is_iceberg = settings["table"] == "iceberg"
    found = iceberg_rows(tmp_path / "table").to_pylist() if is_iceberg else rows(tmp_path / "table")
    letters = tmp_path / "table_dead_letters"
    bad_found = iceberg_rows(letters).to_pylist() if is_iceberg else rows(letters)
    good = sum(row["orders"] for row in found)
    assert late_count > 1
    assert (told.rows, told.unreadable_rows, told.late_rows) == (COUNT + 1, COUNT // EVERY, late_count)
    assert (told.written_rows, told.dead_letters) == (len(found), len(bad_found))
    assert len(bad_found) == COUNT // EVERY
    assert told.state_rows == 1  # of the one that closes the others
    assert good + len(bad_found) + told.late_rows + 1 == COUNT + 1
    page = (tmp_path / "job.prom").read_text()
    for name, value in (
        ("rows_total", COUNT + 1),
        ("written_rows_total", len(found)),
        ("dead_letters_total", COUNT // EVERY),
        ("unreadable_rows_total", COUNT // EVERY),
        ("late_rows_total", late_count),
        ("state_rows", 1),
    ):
        assert re.search(rf"^ropewalk_pipeline_{name}\{{.*\}} {value}$", page, re.MULTILINE), name
    if not is_iceberg:
        assert {path.name for path in (tmp_path / "table").glob("odd=*")} == {"odd=0", "odd=1"}
        commits = [
            each for each in DeltaTable(str(tmp_path / "table")).history() if "ropewalk.late-rows" in each
        ]
        for figure, value in (("late-rows", late_count), ("dead-letters", COUNT // EVERY)):
            assert sum(int(each[f"ropewalk.{figure}"]) for each in commits) == value


def job_descriptions(spark: SparkSession) -> list[str]:
    """Of all jobs that this session has run, as Spark's pages have them."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(index).description() for index in range(jobs.size())]
    return [each.get() for each in found if each.isDefined()]


BAD = [b"{", b'{"item": "tar", "n": "many", "at": "2026-03-01T10:00:00Z"}', b'{"item": "tar", "n": 7}']


def test_rows_that_are_not_the_fields_are_set_apart_once(shop: Shop) -> None:
    """Also where the query would not have asked for what is wrong with them, and where the batch comes again."""
    job: dict[str, Any] = {
        "to": str(shop.directory / "table"),
        "watermark": "at 1 minute",
        "sql": "SELECT item FROM orders WHERE n < 100",
    }
    shop.order(0, 5)
    produce(shop.node, shop.orders, BAD)
    shop.run(**job)
    shop.forget_the_last_commit()
    produce(shop.node, shop.orders, [b"[]"])
    shop.order(5, 7)
    shop.run(**job)
    assert len(rows(shop.directory / "table")) == 7
    letters = sorted(rows(shop.directory / "table_dead_letters"), key=lambda row: int(row["offset"]))
    assert [row["value"] for row in letters] == [*BAD, b"[]"]
    assert [row["error"] for row in letters[1:3]] == [
        "is no JSON object with such fields",
        "has no event time in at",
    ]
    called = [
        each for each in job_descriptions(shop.spark) if each.startswith(f"{shop.directory.name}: batch 0,")
    ]
    assert called
    assert all(f"{shop.orders}-0 0 to 6" in each for each in called)


def test_a_row_that_cannot_be_read_stops_the_job_before_anything_is_committed(shop: Shop) -> None:
    """Though the query would pass over it."""
    topic = shop.node.create(f"{shop.orders}-stopped")
    job: dict[str, Any] = {"to_topic": topic, "tasks": 2, "sql": "SELECT item FROM orders WHERE n < 100"}
    shop.order(0, 10)
    produce(shop.node, shop.orders, BAD[:1])
    with pytest.raises(
        StreamingQueryException, match=r"-0 offset 5 is no JSON object .*bad_rows=dead_letters"
    ):
        shop.run(bad_rows="stop", **job)
    assert shop.node.read(topic) == []
    shop.lose_the_checkpoint()
    tally = Transform.start(shop.work(bad_rows="null", **job))
    assert tally.query.awaitTermination(120)
    assert tally.tally is not None
    total = tally.tally.total
    assert total == Figures(written_rows=10, written_bytes=total.written_bytes, unreadable_rows=1)
    assert not (shop.directory / "checkpoint_dead_letters").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fields": "n int", "format": "json", "schema": "x"}, "say one of them"),
        ({"fields": "n int", "key_format": "json", "key_schema": "x"}, "say one of them"),
        ({"fields": "n nothing"}, "fields is 'n nothing', must be like"),
        ({"format": "json"}, "needs a schema"),
        ({"format": "json", "schema": "nowhere.json"}, "nowhere.json cannot be read"),
        ({"format": "avro", "prefix": True, "schema": "x"}, "say registry"),
        ({"schema": "x.json"}, "format raw has no use for schema"),
        ({"registry": "http://127.0.0.1:1"}, "say format or key_format"),
        ({"key_format": "avro"}, r"of keys: .* needs a schema.*\(key_format, key_schema"),
        ({"key_message": "Order"}, "of keys: format raw has no use for message"),
        ({"bad_rows": "stop", "dead_letters": "x"}, "say bad_rows=dead_letters, or leave it out"),
        ({"partition_by": ["at"]}, "partition_by names at, and the SQL gives n"),
        ({"to": "", "to_topic": "t", "partition_by": ["n"]}, "partition_by is of tables"),
        ({"to": "", "to_topic": "t", "catalog": {"type": "rest"}}, "catalog is of tables"),
        ({"keep_snapshots_hours": -1}, "must be at least 0"),
        ({"bad_rows": "drop"}, "must be dead_letters or null or stop"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_before_anything_is_made(
    shop: Shop, settings: dict[str, Any], message: str
) -> None:
    to = str(shop.directory / "table")
    given = {"sql": "SELECT 1 AS n FROM orders", "to": to, "fields": "", **settings}
    with pytest.raises(WrongUse, match=message):
        Transform.start(shop.work(**given))
    assert sorted(path.name for path in shop.directory.iterdir()) == []
