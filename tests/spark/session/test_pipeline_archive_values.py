"""Values archived as columns by Spark: what can be read is in the table, what cannot is a dead letter, and each record is in one of them."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

import duckdb
import fastavro
from confluent_kafka import Producer
from deltalake import DeltaTable

from ropewalk.spark.refusals import WrongUse
from tests.spark.conftest import Node
from tests.spark.fake_registry import fake_registry, framed
from tests.spark.session.test_pipeline_archive import Run, run
from tests.spark.test_spark_lake_tables import iceberg_rows

__all__ = ["run"]  # the fixture

pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]


def produce(node: Node, topic: str, *values: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for value in values:
        producer.produce(topic, value, key=b"k", partition=0)
    assert producer.flush(30) == 0


def test_json_by_a_schema_that_grows(node: Node, run: Run, tmp_path: Path) -> None:
    topic, lake, schema = node.create("json-orders"), tmp_path / "lake", tmp_path / "order.json"
    fields: dict[str, Any] = {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}
    schema.write_text(json.dumps({"type": "object", "required": ["id"], "properties": fields}))
    produce(
        node,
        topic,
        b'{"id": 1, "at": "2024-05-06T07:08:09Z"}',
        b'{"id": "one"}',
        None,
        b'{"id": 2, "city": "Oslo"}',
    )
    figures = run(topic, format="json", schema=str(schema))
    assert (figures.read_rows, figures.written_rows, figures.dead_letters) == (4, 3, 1)
    told = next(each for each in DeltaTable(str(lake)).history() if "ropewalk.written-rows" in each)
    assert (told["ropewalk.read-rows"], told["ropewalk.written-rows"]) == ("4", "3")
    assert told["ropewalk.written-bytes"] == str(figures.written_bytes)
    (letters_told,) = [
        each["ropewalk.dead-letters"]
        for each in DeltaTable(str(tmp_path / "lake_dead_letters")).history()
        if "ropewalk.dead-letters" in each
    ]
    assert letters_told == told["ropewalk.dead-letters"] == "1"

    fields["city"] = {"type": "string"}
    schema.write_text(json.dumps({"type": "object", "required": ["id"], "properties": fields}))
    produce(node, topic, b'{"id": 3, "city": "Rome"}', b"{")
    run(topic, format="json", schema=str(schema))

    rows = duckdb.from_arrow(DeltaTable(str(lake)).to_pyarrow_dataset())
    found = rows.order('"offset"').project('"offset", value.id, year(value."at"), value.city')
    assert found.fetchall() == [
        (0, 1, 2024, None),
        (2, None, None, None),
        (3, 2, None, None),
        (4, 3, None, "Rome"),
    ]
    letters = DeltaTable(str(tmp_path / "lake_dead_letters")).to_pyarrow_table().sort_by("offset").to_pylist()
    assert [(row["offset"], row["key"], row["value"]) for row in letters] == [
        (1, b"k", b'{"id": "one"}'),
        (5, b"k", b"{"),
    ]
    assert letters[0]["error"] == "does not fit the schema: Expected `int`, got `str` - at `$.id`"

    with pytest.raises(WrongUse, match=r"column 'value' is struct.*, and binary is to be written"):
        run(topic)
    schema.write_text("{")
    with pytest.raises(WrongUse, match="is not JSON"):
        run(topic, format="json", schema=str(schema))


def test_avro_by_a_registry_to_iceberg(node: Node, run: Run, tmp_path: Path) -> None:
    topic = node.create("avro-orders")

    def schema(*fields: dict[str, Any]) -> dict[str, Any]:
        return {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, *fields]}

    def encoded(number: int, of: dict[str, Any], **row: object) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(of), row)
        return framed(number, out.getvalue())

    with fake_registry() as registry:
        first = schema()
        one = registry.register(f"{topic}-value", first)
        produce(node, topic, encoded(one, first, id=1), framed(77, b"\2"))
        run(topic, table="iceberg", format="avro", registry=registry.url)
        second = schema({"name": "city", "type": ["null", "string"], "default": None})
        two = registry.register(f"{topic}-value", second)
        produce(node, topic, encoded(two, second, id=2, city="Oslo"), encoded(one, first, id=3))
        run(topic, table="iceberg", format="avro", registry=registry.url)
        gone = registry.url
    rows = iceberg_rows(tmp_path / "lake").sort_by("offset").select(["offset", "value"]).to_pylist()
    assert [(row["offset"], row["value"]["id"], row["value"]["city"]) for row in rows] == [
        (0, 1, None),
        (2, 2, "Oslo"),
        (3, 3, None),
    ]
    (letter,) = iceberg_rows(tmp_path / "lake_dead_letters").to_pylist()
    assert letter["offset"] == 1
    assert letter["error"] == f"schema 77 is not in the registry {gone}"
