"""Arrow columns in the types of a table that may have more fields than they do, and in another order. Arrow's own cast takes fields by
their place."""

import numpy as np
import pyarrow as pa

from ropewalk.spark.numbers import column_of


def conform(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Fields that are missing become null. Raises `ArrowInvalid` for what the type cannot hold."""
    if column.type == type_ and not _is_nested(type_):
        return column
    if column.offset:
        # Children of a slice are those of the whole; a copy has its own.
        column = column.take(column_of(np.arange(len(column))))
    if pa.types.is_struct(type_):
        return _struct(column, type_)
    if pa.types.is_list(type_):
        values = conform(column.values, type_.value_type)
        return pa.ListArray.from_arrays(column.offsets, values, type=type_, mask=column.is_null())
    if pa.types.is_map(type_):
        return pa.MapArray.from_arrays(
            column.offsets,
            conform(column.keys, type_.key_type),
            conform(column.items, type_.item_type),
            type=type_,
            mask=column.is_null(),
        )
    return column.cast(type_)


def _struct(column: pa.StructArray, type_: pa.StructType) -> pa.StructArray:
    fields = list(type_)
    children = []
    for field in fields:
        index = column.type.get_field_index(field.name)
        missing = pa.nulls(len(column), field.type)
        children.append(conform(column.field(index), field.type) if index >= 0 else missing)
    return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())


def _is_nested(type_: pa.DataType) -> bool:
    return bool(pa.types.is_nested(type_))
