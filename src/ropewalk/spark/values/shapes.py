"""Python objects as parsers make them → Arrow columns.

What a reader could get wrong
    Arrow takes a list of objects whole or not at all. Where it refuses, the list is halved until each row that does not fit stands
    alone: rows beside it are not harmed, and a batch without such rows costs nothing.
    Arrow cuts a float down to a whole number without a word; parsers must have told the two apart before.
    `adapt` is called for what is there; None stays None without it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
from msgspec import Struct

Adapt: TypeAlias = Callable[[object], object]
ROWS_AT_ONCE: Final = 4096
"""Parsed before they become Arrow: few enough that the garbage collector has little to look through."""

WHOLE: Final = pa.int64()
REAL: Final = pa.float64()
INSTANT: Final = pa.timestamp("us", tz="UTC")
TEXT: Final = pa.string()
BYTES: Final = pa.binary()
DECIMAL_DIGITS_MAX: Final = 38
FAULT_CHARACTERS_MAX: Final = 500
"""A fault may repeat what it complains of, and that may be long."""


class Shape(NamedTuple):
    """What a value becomes: a type of Arrow, and what has to be done to the parser's object before Arrow takes it."""

    type: pa.DataType
    adapt: Adapt | None = None


class Read(Struct, frozen=True):
    """One row each for the values that were read. Of a row with a fault the columns are null, and so they are where the value is."""

    columns: pa.StructArray
    faults: pa.Array
    """Text, null where the value was read."""


class Unfit(ValueError):
    """One value that cannot be read; the text says why."""


def struct_shape(fields: Mapping[str, Shape]) -> Shape:
    type_ = pa.struct([pa.field(name, shape.type) for name, shape in fields.items()])
    adapts = [(name, shape.adapt) for name, shape in fields.items() if shape.adapt is not None]
    if not adapts:
        return Shape(type_)

    def adapt(row: object) -> object:
        assert isinstance(row, dict)
        for name, change in adapts:
            value = row.get(name)
            if value is not None:
                row[name] = change(value)
        return row

    return Shape(type_, adapt)


def list_shape(element: Shape) -> Shape:
    type_ = pa.list_(pa.field("element", element.type))
    change = element.adapt
    if change is None:
        return Shape(type_)

    def adapt(items: object) -> object:
        assert isinstance(items, list)
        return [None if item is None else change(item) for item in items]

    return Shape(type_, adapt)


def map_shape(value: Shape) -> Shape:
    """Keys are text."""
    type_ = pa.map_(TEXT, value.type)
    change = value.adapt
    if change is None:
        return Shape(type_)

    def adapt(items: object) -> object:
        assert isinstance(items, dict)
        return {key: None if item is None else change(item) for key, item in items.items()}

    return Shape(type_, adapt)


def read_rows(values: pa.Array, shape: Shape, parse: Callable[[bytes], object]) -> Read:
    """`parse` raises `Unfit` for what it cannot read."""
    columns: list[pa.Array] = []
    faults: list[str | None] = []
    for start in range(0, len(values), ROWS_AT_ONCE):
        rows, why = _parse(values.slice(start, ROWS_AT_ONCE).to_pylist(), parse, shape.adapt)
        columns += _fit(rows, why, shape.type)
        faults += [None if each is None else each[:FAULT_CHARACTERS_MAX] for each in why]
    return Read(pa.concat_arrays(columns) if columns else pa.array([], shape.type), pa.array(faults, TEXT))


def _parse(
    values: Sequence[bytes | None], parse: Callable[[bytes], object], adapt: Adapt | None
) -> tuple[list[object], list[str | None]]:
    rows: list[object] = []
    faults: list[str | None] = []
    for value in values:
        row: object = None
        fault: str | None = None
        if value is not None:
            try:
                row = parse(value)
                if adapt is not None:
                    row = adapt(row)
            except Unfit as error:
                row, fault = None, str(error)
        rows.append(row)
        faults.append(fault)
    return rows, faults


def _fit(rows: list[object], faults: list[str | None], type_: pa.DataType) -> list[pa.Array]:
    """Arrays that are the rows one after another; a row that Arrow refuses is null, and its fault is set."""
    done: list[pa.Array] = []
    left = [(0, len(rows))]
    while left:
        start, end = left.pop()
        try:
            done.append(pa.array(rows[start:end], type_))
        except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            if end - start == 1:
                faults[start] = f"does not fit: {error}"
                done.append(pa.nulls(1, type_))
            else:
                middle = (start + end) // 2
                left += [(middle, end), (start, middle)]
    return done
