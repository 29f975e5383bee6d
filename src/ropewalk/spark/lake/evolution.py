"""Core: how the columns of a table grow with the schema of what is written to it.

Invariants
    What could be read before can be read afterwards, in the same columns, of the same or a wider type.
    Whatever fits the wanted columns fits the table's, nested ones included.

What a reader could get wrong
    Columns of the table come first and keep their order; new ones follow, and are null in all rows there are.
    A column that is no longer wanted stays and is null in what is written from here on.
    To write something narrower than the column is no change. To make the column narrower is not possible at all.
"""

from typing import Final, TypeAlias

import pyarrow as pa
from msgspec import Struct

_WIDTHS: Final = (
    (pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    (pa.float16(), pa.float32(), pa.float64()),
)


class Evolved(Struct, frozen=True):
    schema: pa.Schema
    added: tuple[str, ...] = ()
    """Paths of columns that the table does not have yet."""
    widened: tuple[str, ...] = ()
    """Paths of columns that need a wider type than they have."""


class Refused(Struct, frozen=True):
    reason: str


def evolve(current: pa.Schema, wanted: pa.Schema) -> Evolved | Refused:
    growth = _Growth()
    fields = growth.fields(list(current), list(wanted), "")
    if growth.reason is not None:
        return Refused(growth.reason)
    return Evolved(pa.schema(fields), tuple(growth.added), tuple(growth.widened))


Fields: TypeAlias = list[pa.Field]


class _Growth:
    """Goes through both schemas at once and remembers what it met; the first refusal counts."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self.widened: list[str] = []
        self.reason: str | None = None

    def fields(self, current: Fields, wanted: Fields, above: str) -> Fields:
        by_name = {field.name: field for field in wanted}
        grown = [self._field(field, by_name.pop(field.name, None), above) for field in current]
        for field in by_name.values():
            self.added.append(above + field.name)
            grown.append(pa.field(field.name, _nullable(field.type)))
        return grown

    def _field(self, current: pa.Field, wanted: pa.Field | None, above: str) -> pa.Field:
        path = above + current.name
        if (wanted is None or wanted.nullable) and not current.nullable:
            self._refuse(
                f"column {path!r} has a value in every row of the table, and rows may come without it"
            )
        if wanted is None:
            return current
        return pa.field(current.name, self._type(current.type, wanted.type, path), current.nullable)

    def _type(self, current: pa.DataType, wanted: pa.DataType, path: str) -> pa.DataType:
        if current == wanted:
            return current
        if pa.types.is_struct(current) and pa.types.is_struct(wanted):
            return pa.struct(self.fields(list(current), list(wanted), f"{path}."))
        if pa.types.is_list(current) and pa.types.is_list(wanted):
            element = self._type(current.value_type, wanted.value_type, f"{path}[]")
            return pa.list_(current.value_field.with_type(element))
        if pa.types.is_map(current) and pa.types.is_map(wanted) and current.key_type == wanted.key_type:
            return pa.map_(current.key_type, self._type(current.item_type, wanted.item_type, f"{path}.*"))
        return self._scalar(current, wanted, path)

    def _scalar(self, current: pa.DataType, wanted: pa.DataType, path: str) -> pa.DataType:
        for widths in _WIDTHS:
            if current in widths and wanted in widths:
                if widths.index(wanted) > widths.index(current):
                    self.widened.append(path)
                    return wanted
                return current
        if (
            pa.types.is_decimal128(current)
            and pa.types.is_decimal128(wanted)
            and current.scale == wanted.scale
        ):
            if wanted.precision > current.precision:
                self.widened.append(path)
                return wanted
            return current
        self._refuse(f"column {path!r} is {current}, and {wanted} is to be written")
        return current

    def _refuse(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason


def _nullable(type_: pa.DataType) -> pa.DataType:
    """The same with all fields nullable: whoever requires one may stop doing so, and a table cannot take it back."""
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _nullable(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(pa.field(type_.value_field.name, _nullable(type_.value_type)))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _nullable(type_.item_type))
    return type_
