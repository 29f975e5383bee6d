"""Avro values become columns: by a schema from a file, or by the one that a registry knows under the value's number."""

import datetime
import io
import json
import uuid
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.decoding import ResolvedFormat, ValueFormat, ValueReader, open_reader, resolve
from ropewalk.spark.values.registry import ATTEMPTS, Registry, RegistryFailed
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.spark.values.shapes import Read
from tests.spark.fake_registry import FakeRegistry, fake_registry, framed

LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "price", "type": "float"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "wall", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "token", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["new", "paid"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
        {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 16, "logicalType": "uuid"}},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "labels", "type": {"type": "map", "values": "long"}},
        {"name": "number", "type": ["null", "int", "long"]},
        {
            "name": "either",
            "type": ["null", "string", "boolean", "State", "Line", {"type": "map", "values": "int"}],
        },
    ],
}
ROW: dict[str, Any] = {
    "id": 7,
    "customer": "Ada",
    "amount": Decimal("12.50"),
    "price": 1.5,
    "at": datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.UTC),
    "wall": datetime.datetime(2024, 5, 6, 7, 8, 9),
    "day": datetime.date(2024, 5, 6),
    "time": datetime.time(1, 2, 3),
    "token": uuid.UUID(int=5),
    "state": "paid",
    "hash": b"ab",
    "mark": uuid.UUID(int=6).bytes,
    "lines": [{"sku": "a", "count": 2}],
    "labels": {"x": 1},
    "number": 2**40,
    "either": None,
}


def encode(row: Any, schema: Any = ORDER) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


def reader(schema: object = ORDER) -> ValueReader:
    return open_reader(ResolvedFormat(ValueFormat(format="avro"), SchemaText("avro", json.dumps(schema))))


def read(values: Sequence[bytes | None], schema: object = ORDER) -> Read:
    return reader(schema).read(pa.array(values, pa.binary()))


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as made:
        yield made


def test_every_type_has_its_column() -> None:
    line = pa.struct([("sku", pa.string()), ("count", pa.int64())])
    either = [
        ("member0", pa.string()),
        ("member1", pa.bool_()),
        ("member2", pa.string()),
        ("member3", line),
        ("member4", pa.map_(pa.string(), pa.int64())),
    ]
    assert reader().schema() == pa.schema(
        [
            ("id", pa.int64()),
            ("customer", pa.string()),
            ("amount", pa.decimal128(12, 2)),
            ("price", pa.float64()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("wall", pa.timestamp("us")),
            ("day", pa.date32()),
            ("time", pa.int64()),
            ("token", pa.string()),
            ("state", pa.string()),
            ("hash", pa.binary()),
            ("mark", pa.string()),
            ("lines", pa.list_(pa.field("element", line))),
            ("labels", pa.map_(pa.string(), pa.int64())),
            ("number", pa.int64()),
            ("either", pa.struct(either)),
        ]
    )


def test_a_full_value_is_read() -> None:
    found = read([encode(ROW)])
    assert found.faults.to_pylist() == [None]
    assert found.columns.to_pylist() == [
        {
            **ROW,
            "time": 3_723_000_000,
            "token": str(uuid.UUID(int=5)),
            "mark": str(uuid.UUID(int=6)),
            "labels": [("x", 1)],
        }
    ]


@pytest.mark.parametrize(
    ("value", "member", "expected"),
    [
        ("text", 0, "text"),
        (True, 1, True),
        (("shop.State", "new"), 2, "new"),
        (("shop.Line", {"sku": "a", "count": 1}), 3, {"sku": "a", "count": 1}),
        ({"k": 1}, 4, [("k", 1)]),
    ],
)
def test_of_a_union_one_member_is_set(value: object, member: int, expected: object) -> None:
    (row,) = read([encode({**ROW, "either": value})]).columns.to_pylist()
    assert row["either"] == {f"member{index}": expected if index == member else None for index in range(5)}


@pytest.mark.parametrize(
    "value",
    [b"", b"\xff" * 40, encode(ROW)[:-1], encode(ROW) + b"\0", encode(ROW)[:3]],
)
def test_a_value_that_is_not_of_the_schema_harms_nobody(value: bytes) -> None:
    fine = encode(ROW)
    found = read([fine, value, None, fine])
    assert [fault is None for fault in found.faults.to_pylist()] == [True, False, True, True]
    assert found.columns.is_valid().to_pylist() == [True, False, False, True]
    assert "Avro schema" in found.faults[1].as_py()


def test_a_decimal_that_overflows_is_a_fault() -> None:
    wide = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}}
        ],
    }
    raw = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "bytes"}]}
    found = read([encode({"a": (123456).to_bytes(3, "big")}, raw), encode({"a": b"\x01"}, raw)], wide)
    assert found.faults.to_pylist()[1] is None
    assert "does not fit" in found.faults[0].as_py()
    assert found.columns.to_pylist()[1] == {"a": Decimal("0.01")}


@given(st.lists(st.one_of(st.none(), st.binary(max_size=60), st.just(encode(ROW))), max_size=20))
def test_any_bytes_are_either_a_row_or_a_fault(values: list[bytes | None]) -> None:
    found = _READER.read(pa.array(values, pa.binary()))
    for value, row, fault in zip(values, found.columns.to_pylist(), found.faults.to_pylist(), strict=True):
        assert (row is None) == (value is None or fault is not None)


_READER = reader()


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("string", "must be a record"),
        ({"type": "record", "name": "R", "fields": []}, "without fields"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "null"}]}, r"\$.a has type 'null'"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null"]}]}, "always null"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]}, "in itself"),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "Nobody"}]},
            "not a schema of Avro",
        ),
        (
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {"name": "a", "type": {"type": "bytes", "logicalType": "decimal", "precision": 39}}
                ],
            },
            "precision",
        ),
    ],
)
def test_a_schema_that_is_no_table_is_refused(schema: object, reason: str) -> None:
    with pytest.raises(WrongUse, match=reason):
        reader(schema)


def _version(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "V", "fields": list(fields)}


def test_rows_of_every_version_have_the_newest_versions_columns(registry: FakeRegistry) -> None:
    old = _version({"name": "id", "type": "int"}, {"name": "gone", "type": "string"})
    new = _version({"name": "id", "type": "long"}, {"name": "more", "type": "string", "default": "none"})
    first, second = registry.register("t-value", old), registry.register("t-value", new)
    settings = ValueFormat(format="avro", registry=registry.url)
    opened = open_reader(resolve(settings, ["t"]))
    values = [
        framed(first, encode({"id": 1, "gone": "x"}, old)),
        framed(second, encode({"id": 2**40, "more": "y"}, new)),
    ]
    found = opened.read(pa.array(values * 3, pa.binary()))
    assert found.columns.to_pylist()[:2] == [{"id": 1, "more": "none"}, {"id": 2**40, "more": "y"}]
    assert found.faults.null_count == 6
    assert sorted(registry.asked) == ["/schemas/ids/1", "/schemas/ids/2", "/subjects/t-value/versions/latest"]


def test_faults_of_framed_values(registry: FakeRegistry) -> None:
    schema = _version({"name": "id", "type": "int"})
    number = registry.register("t-value", schema)
    other = registry.register(
        "other", {"type": "record", "name": "V", "fields": [{"name": "id", "type": "string"}]}
    )
    json_schema = registry.register("third", {"type": "object"}, "JSON")
    opened = open_reader(resolve(ValueFormat(format="avro", registry=registry.url), ["t"]))
    fine = framed(number, encode({"id": 1}, schema))
    values = [
        fine,
        b"\0\0",
        b"\1" + fine[1:],
        framed(99, b"\2"),
        framed(99, b"\2"),
        framed(other, b"\2a"),
        framed(json_schema, b"{}"),
        fine,
    ]
    faults = opened.read(pa.array(values, pa.binary())).faults.to_pylist()
    assert faults[0] is None
    assert faults[-1] is None
    assert "too short" in faults[1]
    assert "begins with 0x01" in faults[2]
    assert faults[3] == faults[4] == f"schema 99 is not in the registry {registry.url}"
    assert "cannot be brought to the table's" in faults[5]
    assert "is JSON in the registry, not avro" in faults[6]
    assert registry.asked.count("/schemas/ids/99") == 1


def test_a_registry_that_does_not_answer_fails_the_batch_and_calls_no_row_bad(registry: FakeRegistry) -> None:
    schema = _version({"name": "id", "type": "int"})
    number = registry.register("t-value", schema)
    pauses: list[float] = []
    asking = Registry(registry.url, pause=pauses.append)
    registry.failures = [500, 503, 429]
    assert asking.by_id(number, "avro").kind == "avro"
    assert pauses == [0.2, 0.4, 0.8]
    registry.failures = [500] * ATTEMPTS
    with pytest.raises(RegistryFailed, match=f"did not answer for schema 5 in {ATTEMPTS} attempts"):
        asking.by_id(5, "avro")
    opened = open_reader(resolve(ValueFormat(format="avro", registry=registry.url), ["t"]))
    registry.failures = [400]
    with pytest.raises(RegistryFailed, match="answers 400"):
        opened.read(pa.array([framed(number, encode({"id": 1}, schema))]))
    gone = Registry("http://127.0.0.1:1", pause=lambda _: None)
    with pytest.raises(RegistryFailed, match="refused"):
        gone.by_id(1, "avro")


def test_a_login_is_taken_from_the_url_and_never_repeated(registry: FakeRegistry) -> None:
    registry.login = "ada:s/ecret"
    number = registry.register("t-value", _version({"name": "id", "type": "int"}))
    url = registry.url.replace("http://", "http://ada:s%2Fecret@")
    assert Registry(url).by_id(number, "avro").references == ()
    with pytest.raises(RegistryFailed, match="401: check user and password") as refused:
        Registry(registry.url.replace("http://", "http://ada:wrong@")).by_id(number, "avro")
    assert "wrong" not in str(refused.value)


def test_schemas_may_refer_to_others(registry: FakeRegistry) -> None:
    registry.register("line", {**LINE, "name": "shop.Line"})
    whole = {"type": "record", "name": "shop.Order", "fields": [{"name": "line", "type": "shop.Line"}]}
    reference = {"name": "shop.Line", "subject": "line", "version": 1}
    number = registry.register("t-value", whole, references=[reference])
    opened = open_reader(resolve(ValueFormat(format="avro", registry=registry.url), ["t"]))
    row = {"line": {"sku": "a", "count": 1}}
    body = encode(row, {**whole, "fields": [{"name": "line", "type": LINE}]})
    assert opened.read(pa.array([framed(number, body)])).columns.to_pylist() == [row]


def test_a_reader_needs_a_schema_it_can_find(registry: FakeRegistry, tmp_path: Any) -> None:
    url = registry.url
    for settings, topics, reason in [
        (ValueFormat(format="avro"), ["t"], "needs a schema"),
        (ValueFormat(format="avro", registry=url), ["t"], "subject 't-value' is not in the registry"),
        (ValueFormat(format="avro", registry=url), ["t", "u"], "several topics"),
        (ValueFormat(format="avro", registry="nowhere"), ["t"], "must be a URL"),
        (ValueFormat(format="avro", schema=str(tmp_path / "none")), ["t"], "cannot be read: No such file"),
        (ValueFormat(format="avro", schema="x", prefix=True), ["t"], "say registry"),
        (ValueFormat(schema="x"), ["t"], "raw has no use for schema"),
        (ValueFormat(prefix=True), ["t"], "raw has no use for prefix; say format json or avro or protobuf"),
        (ValueFormat(format="avro", schema="x", unknown_fields="keep"), ["t"], "say format json, or leave"),
        (ValueFormat(format="json", schema="x", message="a.B"), ["t"], "json has no use for message"),
    ]:
        with pytest.raises(WrongUse, match=reason):
            resolve(settings, topics)
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    resolved = resolve(ValueFormat(format="avro", schema=str(tmp_path / "order.avsc")))
    assert open_reader(resolved).schema() == reader().schema()
