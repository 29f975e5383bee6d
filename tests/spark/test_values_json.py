"""JSON values become columns, and each that does not fit says why, without harm to its neighbours."""

import datetime
import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.decoding import ResolvedFormat, ValueFormat, ValueReader, open_reader
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.spark.values.shapes import ROWS_AT_ONCE, Read

ORDER = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["id", "customer"],
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "customer": {"type": "string", "minLength": 1},
        "amount": {"type": ["string", "number", "null"], "format": "decimal", "precision": 12, "scale": 2},
        "price": {"type": "number"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "state": {"enum": ["new", "paid", None]},
        "picture": {"type": "string", "contentEncoding": "base64"},
        "paid": {"type": "boolean"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
        "extra": {},
    },
    "$defs": {
        "line": {
            "type": "object",
            "required": ["sku"],
            "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "format": "int32"}},
        }
    },
}


def reader(schema: object = ORDER, **settings: Any) -> ValueReader:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return open_reader(ResolvedFormat(ValueFormat(format="json", **settings), SchemaText("json", text)))


def read(values: Sequence[bytes | None], schema: object = ORDER, **settings: Any) -> Read:
    return reader(schema, **settings).read(pa.array(values, pa.binary()))


def test_every_type_has_its_column() -> None:
    line = pa.struct([("sku", pa.string()), ("count", pa.int64())])
    assert reader().schema() == pa.schema(
        [
            ("id", pa.int64()),
            ("customer", pa.string()),
            ("amount", pa.decimal128(12, 2)),
            ("price", pa.float64()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("day", pa.date32()),
            ("state", pa.string()),
            ("picture", pa.binary()),
            ("paid", pa.bool_()),
            ("lines", pa.list_(pa.field("element", line))),
            ("labels", pa.map_(pa.string(), pa.int64())),
            ("extra", pa.string()),
        ]
    )


def test_a_full_value_is_read() -> None:
    value = b"""{"id": 7, "customer": "Ada", "amount": 12.5, "price": 3, "at": "2024-05-06T07:08:09+02:00", "day": "2024-05-06",
        "state": "paid", "picture": "YWI=", "paid": true, "lines": [{"sku": "a", "count": 2}, {"sku": "b"}],
        "labels": {"x": 1}, "extra": {"free": [1, "form"]}, "unheard": 1}"""
    found = read([value])
    assert found.faults.to_pylist() == [None]
    assert found.columns.to_pylist() == [
        {
            "id": 7,
            "customer": "Ada",
            "amount": Decimal("12.50"),
            "price": 3.0,
            "at": datetime.datetime(2024, 5, 6, 5, 8, 9, tzinfo=datetime.UTC),
            "day": datetime.date(2024, 5, 6),
            "state": "paid",
            "picture": b"ab",
            "paid": True,
            "lines": [{"sku": "a", "count": 2}, {"sku": "b", "count": None}],
            "labels": [("x", 1)],
            "extra": '{"free": [1, "form"]}',
        }
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b'{"id": 1', "is not JSON"),
        (b'{"id": 1, "customer": "\xff"}', "is not JSON"),
        (b'{"id": 1, "customer": "a"}{"id": 2, "customer": "b"}', "is not JSON"),
        (b"[" * 100_000, "is not JSON|does not fit"),
        (b'{"extra": ' + b"[" * 100_000, "is not JSON"),
        (b"[]", "does not fit the schema: Expected `object`, got `array`"),
        (b"null", "does not fit the schema"),
        (b'{"id": 1}', "missing required field `customer`"),
        (b'{"id": null, "customer": "a"}', r"Expected `int`, got `null` - at `\$.id`"),
        (b'{"id": "1", "customer": "a"}', r"Expected `int`, got `str` - at `\$.id`"),
        (b'{"id": 1.5, "customer": "a"}', r"Expected `int`, got `float` - at `\$.id`"),
        (b'{"id": -1, "customer": "a"}', r">= 0"),
        (b'{"id": 9223372036854775808, "customer": "a"}', r"at `\$.id`"),
        (b'{"id": 1, "customer": ""}', "length >= 1"),
        (b'{"id": 1, "customer": "a", "state": "lost"}', "Invalid enum value 'lost'"),
        (b'{"id": 1, "customer": "a", "at": "2024-05-06T07:08:09"}', "timezone"),
        (b'{"id": 1, "customer": "a", "amount": "12345678901.00"}', "does not fit"),
        (b'{"id": 1, "customer": "a", "amount": 0.001}', "does not fit"),
        (
            b'{"id": 1, "customer": "a", "lines": [{"sku": "a", "count": 2147483648}]}',
            r"at `\$.lines\[0\].count`",
        ),
        (b'{"id": 1, "customer": "a", "lines": [{}]}', "missing required field `sku`"),
    ],
)
def test_a_value_that_does_not_fit_says_why_and_harms_nobody(value: bytes, reason: str) -> None:
    fine = b'{"id": 1, "customer": "a"}'
    found = read([fine, value, None, fine])
    faults = found.faults.to_pylist()
    assert [fault is None for fault in faults] == [True, False, True, True]
    assert found.columns.is_valid().to_pylist() == [True, False, False, True]
    assert re.search(reason, faults[1]), faults[1]


def test_values_that_do_not_fit_are_found_among_many() -> None:
    """Arrow refuses a whole list for one of them: here the precision of a decimal, which no parser checks."""
    count = ROWS_AT_ONCE * 2 + 17
    bad = {0, 1, 700, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, count - 1}
    values: list[bytes | None] = [
        b'{"id": %d, "customer": "a", "amount": %s}' % (at, b"0.001" if at in bad else b"0.01")
        for at in range(count)
    ]
    found = read(values)
    assert {at for at, fault in enumerate(found.faults.to_pylist()) if fault is not None} == bad
    ids = found.columns.field("id").to_pylist()
    assert all(ids[at] == at for at in range(count) if at not in bad)


def test_unknown_fields_are_ignored_kept_or_refused() -> None:
    value = b'{"id": 1, "customer": "a", "b": [1, 2], "a": {"x": null}}'
    fine = b'{"id": 1, "customer": "a"}'
    assert "_rest" not in reader().schema().names  # type: ignore[union-attr]
    kept = read([value, fine], unknown_fields="keep")
    assert [row["_rest"] for row in kept.columns.to_pylist()] == ['{"b":[1, 2],"a":{"x": null}}', None]
    refused = read([value, fine], unknown_fields="refuse")
    assert refused.faults.to_pylist() == ["does not fit the schema: it has no field 'a'", None]


def test_a_field_may_not_stand_where_unknown_ones_are_kept() -> None:
    schema = {"type": "object", "properties": {"_rest": {"type": "string"}}}
    with pytest.raises(WrongUse, match="has a field '_rest' of its own"):
        reader(schema, unknown_fields="keep")
    assert reader(schema).schema() == pa.schema([("_rest", pa.string())])


def test_a_prefix_is_taken_off() -> None:
    body = b'{"id": 1, "customer": "a"}'
    found = read([b"\0\0\0\0\x09" + body, body, b"\0\0"], prefix=True)
    assert found.columns.is_valid().to_pylist() == [True, False, False]
    assert found.faults.to_pylist()[1:] == [
        "begins with 0x7b where a schema's number begins with 0x00",
        "2 bytes are too short for a schema's number",
    ]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "is not JSON"),
        ({"type": "string"}, "must describe an object"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "must describe an object"),
        ({"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}, r"\$.a has type"),
        (
            {"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}},
            "one of several",
        ),
        ({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}, "uniqueItems"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "not there"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "contains itself"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, r"\$.a"),
        (
            {"type": "object", "properties": {"a": {"type": "string", "format": "decimal", "precision": 39}}},
            "precision",
        ),
        ({"type": "object", "properties": {"a": {"enum": ["x", 1]}}}, "several types"),
        (
            {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": False}}},
            "no field",
        ),
        ({"type": "object", "properties": {"a": {}}, "required": ["b"]}, "requires 'b'"),
        ({"type": "object", "properties": {"a": 5}}, "no schema"),
        ({"type": 5}, "'type' with 5"),
        ({"type": ["object", ["null"]], "properties": {"a": {}}}, "'type' with"),
        ({"type": "object", "properties": {"a": {}}, "required": "a"}, "'required' with 'a'"),
        ({"type": "object", "properties": {"a": {"enum": 5}}}, "'enum' with 5"),
        ({"type": "object", "properties": {"a": {"type": "integer", "minimum": "1"}}}, "'minimum' with '1'"),
        (
            {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1.5}}},
            "'maxLength' with 1.5",
        ),
    ],
)
def test_a_schema_that_is_no_table_is_refused(schema: object, reason: str) -> None:
    with pytest.raises(WrongUse, match=reason):
        reader(schema)


def test_bounds_of_a_schema_and_of_the_column_hold_together() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 8},
            "b": {"type": "integer", "maximum": 1e30},
        },
    }
    found = read(
        [b'{"a": %d}' % number for number in range(4, 10)]
        + [b'{"b": 9223372036854775807}', b'{"b": 9223372036854775808}'],
        schema,
    )
    assert [fault is None for fault in found.faults.to_pylist()] == [
        False,
        False,
        True,
        True,
        False,
        False,
        True,
        False,
    ]


@given(
    st.lists(
        st.one_of(st.none(), st.binary(max_size=40), st.just(b'{"id": 3, "customer": "x"}')), max_size=30
    )
)
def test_any_bytes_are_either_a_row_or_a_fault(values: list[bytes | None]) -> None:
    found = read(values)
    assert len(found.columns) == len(found.faults) == len(values)
    for value, row, fault in zip(values, found.columns.to_pylist(), found.faults.to_pylist(), strict=True):
        assert (row is None) == (value is None or fault is not None)
        assert value is not None or fault is None


_WORDS = [
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "const",
    "$ref",
    "anyOf",
    "minimum",
    "pattern",
    "minItems",
    "format",
    "precision",
]
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 50),
    st.sampled_from(["string", "integer", "object", "array", "null", "decimal", "#"]),
)
_ANY_JSON = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*_WORDS, "a"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("ab"), _ANY_JSON, max_size=2))
def test_any_json_is_a_schema_or_refused(properties: dict[str, object]) -> None:
    try:
        made = reader({"type": "object", "properties": properties})
    except WrongUse:
        return
    assert made.read(pa.array([b"{}"])).faults.null_count == 1
