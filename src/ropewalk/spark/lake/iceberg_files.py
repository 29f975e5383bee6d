"""Files as Iceberg's manifests describe them: by what tasks have said of them, so that nobody reads a footer.

What a reader could get wrong
    Bounds are of what queries choose files by: `offset`, `timestamp` and `partition`, where they are a topic's. A bound that is not known, such
    as that of timestamps no calendar has, is left out, and such a file is never passed over.
"""

from typing import Final

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, LongType, PrimitiveType, TimestamptzType

from ropewalk.spark.columns import Column
from ropewalk.spark.lake.table import Values, WrittenFile

_BOUNDED: Final[dict[Column, PrimitiveType]] = {
    Column.OFFSET: LongType(),
    Column.TIMESTAMP: TimestamptzType(),
    Column.PARTITION: IntegerType(),
}


def described(table: Table, file: WrittenFile, path: str) -> DataFile:
    """`path` is the whole address."""
    bounds = _bounds(table.schema(), file)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=_partition(table, file.partition_values),
        record_count=file.row_count,
        file_size_in_bytes=file.size_bytes,
        column_sizes={},
        value_counts=dict.fromkeys(bounds, file.row_count),
        null_value_counts=dict.fromkeys(bounds, 0),
        nan_value_counts={},
        lower_bounds={number: least for number, (least, _) in bounds.items()},
        upper_bounds={number: most for number, (_, most) in bounds.items()},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=table.spec().spec_id,
    )


def values_of(table: Table, file: DataFile) -> Values:
    """Of the columns that the table is partitioned by, as text."""
    types = _partition_types(table)
    return tuple(
        (name, None if value is None else _text(value, type_))
        for (name, type_), value in zip(types, (file.partition[at] for at in range(len(types))), strict=True)
    )


def _bounds(schema: Schema, file: WrittenFile) -> dict[int, tuple[bytes, bytes]]:
    known = {
        Column.OFFSET: (file.offset_min, file.offset_max),
        Column.TIMESTAMP: (_microseconds(file.timestamp_min_ms), _microseconds(file.timestamp_max_ms)),
        Column.PARTITION: (file.partition_min, file.partition_max),
    }
    found = {}
    for column, type_ in _BOUNDED.items():
        least, most = known[column]
        field = schema.find_field(column.value) if column.value in schema.column_names else None
        if least is not None and most is not None and field is not None and field.field_type == type_:
            found[field.field_id] = (to_bytes(type_, least), to_bytes(type_, most))
    return found


def _microseconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * 1000


def _partition(table: Table, texts: dict[str, str | None]) -> Record:
    return Record(*(_value(texts[name], type_) for name, type_ in _partition_types(table)))


def _partition_types(table: Table) -> list[tuple[str, pa.DataType]]:
    columns = schema_to_pyarrow(table.schema(), include_field_ids=False)
    return [(field.name, columns.field(field.name).type) for field in table.spec().fields]


def _value(text: str | None, type_: pa.DataType) -> object:
    """As Iceberg has it: dates and times are numbers."""
    if text is None:
        return None
    value = pa.scalar(text).cast(type_)
    return value.cast(_number_of(type_)).as_py() if pa.types.is_temporal(type_) else value.as_py()


def _text(value: object, type_: pa.DataType) -> str:
    if pa.types.is_temporal(type_):
        return str(pa.scalar(value, _number_of(type_)).cast(type_).cast(pa.string()).as_py())
    return str(pa.scalar(value, type_).cast(pa.string()).as_py())


def _number_of(type_: pa.DataType) -> pa.DataType:
    return pa.int32() if type_.bit_width == 32 else pa.int64()
