"""A table's columns grow with what is written to it, and never in a way that loses what it has."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.spark.lake.conforming import conform
from ropewalk.spark.lake.evolution import Evolved, Refused, evolve
from ropewalk.spark.lake.judging import value_schema
from ropewalk.spark.refusals import WrongUse

ID = pa.field("id", pa.int64())


def value(*fields: Any) -> pa.Schema:
    return pa.schema([ID, pa.field("value", pa.struct([pa.field(*field) for field in fields]))])


def of(name: str, type_: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, type_)])


@pytest.mark.parametrize(
    ("current", "wanted", "expected", "added", "widened"),
    [
        (value(("a", pa.int64())), value(("a", pa.int64())), value(("a", pa.int64())), (), ()),
        (
            value(("a", pa.int64())),
            value(("b", pa.string()), ("a", pa.int64())),
            value(("a", pa.int64()), ("b", pa.string())),
            ("value.b",),
            (),
        ),
        (
            value(("a", pa.int64()), ("b", pa.int64())),
            value(("b", pa.int64())),
            value(("a", pa.int64()), ("b", pa.int64())),
            (),
            (),
        ),
        (value(("a", pa.int32())), value(("a", pa.int64())), value(("a", pa.int64())), (), ("value.a",)),
        (value(("a", pa.int64())), value(("a", pa.int32())), value(("a", pa.int64())), (), ()),
        (
            value(("a", pa.float32())),
            value(("a", pa.float64())),
            value(("a", pa.float64())),
            (),
            ("value.a",),
        ),
        (
            of("a", pa.decimal128(5, 2)),
            of("a", pa.decimal128(9, 2)),
            of("a", pa.decimal128(9, 2)),
            (),
            ("a",),
        ),
        (
            of("a", pa.list_(pa.field("element", pa.struct([("x", pa.int64())])))),
            of("a", pa.list_(pa.field("element", pa.struct([("y", pa.int64())])))),
            of("a", pa.list_(pa.field("element", pa.struct([("x", pa.int64()), ("y", pa.int64())])))),
            ("a[].y",),
            (),
        ),
        (
            of("a", pa.map_(pa.string(), pa.struct([("x", pa.int64())]))),
            of("a", pa.map_(pa.string(), pa.struct([("y", pa.int64())]))),
            of("a", pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.int64())]))),
            ("a.*.y",),
            (),
        ),
        (
            pa.schema([ID]),
            pa.schema(
                [ID, pa.field("n", pa.struct([pa.field("x", pa.int64(), nullable=False)]), nullable=False)]
            ),
            pa.schema([ID, pa.field("n", pa.struct([("x", pa.int64())]))]),
            ("n",),
            (),
        ),
    ],
)
def test_what_a_table_becomes(
    current: pa.Schema,
    wanted: pa.Schema,
    expected: pa.Schema,
    added: tuple[str, ...],
    widened: tuple[str, ...],
) -> None:
    assert evolve(current, wanted) == Evolved(expected, added, widened)


@pytest.mark.parametrize(
    ("current", "wanted", "reason"),
    [
        (of("a", pa.string()), of("a", pa.int64()), "column 'a' is string, and int64 is to be written"),
        (of("a", pa.int64()), of("a", pa.float64()), "column 'a' is int64, and double is to be written"),
        (of("a", pa.float64()), of("a", pa.int64()), "column 'a' is double, and int64 is to be written"),
        (of("a", pa.binary()), of("a", pa.struct([("x", pa.int64())])), "column 'a' is binary"),
        (of("a", pa.decimal128(9, 2)), of("a", pa.decimal128(9, 3)), "column 'a' is decimal128"),
        (
            value(("a", pa.struct([("x", pa.string())]))),
            value(("a", pa.struct([("x", pa.bool_())]))),
            "column 'value.a.x' is",
        ),
        (of("a", pa.list_(pa.string())), of("a", pa.list_(pa.int64())), "column 'a[]' is string"),
        (
            of("a", pa.map_(pa.string(), pa.int64())),
            of("a", pa.map_(pa.int64(), pa.int64())),
            "column 'a' is map",
        ),
        (
            pa.schema([pa.field("a", pa.int64(), nullable=False)]),
            pa.schema([ID]),
            "column 'a' has a value in every row",
        ),
        (
            pa.schema([pa.field("a", pa.int64(), nullable=False)]),
            of("a", pa.int64()),
            "column 'a' has a value in every row",
        ),
    ],
)
def test_what_a_table_refuses(current: pa.Schema, wanted: pa.Schema, reason: str) -> None:
    refused = evolve(current, wanted)
    assert isinstance(refused, Refused)
    assert refused.reason.startswith(reason)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([("a b", pa.int64())], "'value.a b' cannot be the name of a column"),
        ([("", pa.int64())], "'value.' cannot be the name"),
        ([("Id", pa.int64()), ("id", pa.int64())], r"'value\.id' and 'value\.Id' would be one column"),
        ([("l", pa.list_(pa.struct([("x=", pa.int64())])))], r"'value\.l\[\]\.x=' cannot be"),
        ([("m", pa.map_(pa.string(), pa.struct([("x,", pa.int64())])))], r"'value\.m\.\*\.x,' cannot be"),
    ],
)
def test_names_that_no_column_can_have(fields: list[tuple[str, pa.DataType]], reason: str) -> None:
    with pytest.raises(WrongUse, match=reason):
        value_schema(pa.schema([("value", pa.binary())]), pa.schema(fields))


def test_fields_of_different_columns_may_have_one_name() -> None:
    fields = pa.schema([("größe", pa.struct([("id", pa.int64())])), ("id", pa.struct([("ID", pa.int64())]))])
    assert value_schema(pa.schema([("value", pa.binary())]), fields).field("value").type == pa.struct(
        list(fields)
    )


_SCALARS = st.sampled_from([pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.bool_()])
_TYPES: st.SearchStrategy[pa.DataType] = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda type_: pa.list_(pa.field("element", type_))),
        inner.map(lambda type_: pa.map_(pa.string(), type_)),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
            lambda fields: pa.struct(list(fields.items()))
        ),
    ),
    max_leaves=5,
)
_SCHEMAS = st.dictionaries(st.sampled_from("abcd"), _TYPES, min_size=1).map(
    lambda fields: pa.schema(list(fields.items()))
)


def _objects(type_: pa.DataType) -> Any:
    if pa.types.is_struct(type_):
        whole: Any = st.fixed_dictionaries({field.name: _objects(field.type) for field in type_})
    elif pa.types.is_list(type_):
        whole = st.lists(_objects(type_.value_type), max_size=3)
    elif pa.types.is_map(type_):
        whole = st.dictionaries(st.sampled_from("xy"), _objects(type_.item_type)).map(
            lambda each: list(each.items())
        )
    elif pa.types.is_integer(type_):
        whole = st.integers(-(2**31), 2**31 - 1)
    elif pa.types.is_floating(type_):
        whole = st.floats(width=16, allow_nan=False)
    else:
        whole = st.text(max_size=3) if type_ == pa.string() else st.booleans()
    return st.none() | whole


def _within(row: Any, type_: pa.DataType, wide: Any) -> bool:
    """Whether `wide` says all that `row` says, and of everything else nothing."""
    if row is None or not pa.types.is_nested(type_):
        return bool(row == wide)
    if pa.types.is_struct(type_):
        types = {field.name: field.type for field in type_}
        return all(
            _within(row[name], types[name], wide[name]) if name in types else wide[name] is None
            for name in wide
        )
    if pa.types.is_map(type_):
        return [key for key, _ in row] == [key for key, _ in wide] and all(
            _within(one, type_.item_type, other) for (_, one), (_, other) in zip(row, wide, strict=True)
        )
    return len(row) == len(wide) and all(
        _within(one, type_.value_type, other) for one, other in zip(row, wide, strict=True)
    )


@given(_SCHEMAS, _SCHEMAS, st.data())
def test_rows_of_before_and_after_fit_the_grown_table(
    current: pa.Schema, wanted: pa.Schema, data: st.DataObject
) -> None:
    grown = evolve(current, wanted)
    if isinstance(grown, Refused):
        return
    assert grown.schema.names[: len(current.names)] == current.names
    for schema in (current, wanted):
        again = evolve(grown.schema, schema)
        assert again == Evolved(grown.schema), "what was taken once needs no further growth"
        for field in schema:
            rows = data.draw(st.lists(_objects(field.type), max_size=5))
            start = data.draw(st.integers(0, len(rows)))
            column = pa.array(rows, field.type).slice(start)
            taken = conform(column, grown.schema.field(field.name).type)
            assert taken.type == grown.schema.field(field.name).type
            taken.validate(full=True)
            for row, wide in zip(column.to_pylist(), taken.to_pylist(), strict=True):
                assert _within(row, field.type, wide)
