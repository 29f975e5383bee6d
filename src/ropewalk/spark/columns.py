"""What a row of a topic has. Names and types are those of Spark's own Kafka source, so that queries need no change."""

from collections.abc import Sequence
from enum import Enum
from typing import Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ropewalk.spark.refusals import WrongUse


class Column(Enum):
    KEY = "key"
    VALUE = "value"
    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    TIMESTAMP_TYPE = "timestampType"
    HEADERS = "headers"

    @property
    def arrow_type(self) -> pa.DataType:
        return _ARROW[self]

    @property
    def spark_type(self) -> DataType:
        return _SPARK[self]


HEADER_FIELDS: Final = (pa.field("key", pa.string()), pa.field("value", pa.binary()))

_ARROW: Final = {
    Column.KEY: pa.binary(),
    Column.VALUE: pa.binary(),
    Column.TOPIC: pa.string(),
    Column.PARTITION: pa.int32(),
    Column.OFFSET: pa.int64(),
    Column.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Column.TIMESTAMP_TYPE: pa.int32(),
    Column.HEADERS: pa.list_(pa.field("element", pa.struct(list(HEADER_FIELDS)))),
}

_SPARK: Final[dict[Column, DataType]] = {
    Column.KEY: BinaryType(),
    Column.VALUE: BinaryType(),
    Column.TOPIC: StringType(),
    Column.PARTITION: IntegerType(),
    Column.OFFSET: LongType(),
    Column.TIMESTAMP: TimestampType(),
    Column.TIMESTAMP_TYPE: IntegerType(),
    Column.HEADERS: ArrayType(
        StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    ),
}


def schema_of(columns: Sequence[Column]) -> StructType:
    return StructType([StructField(column.value, column.spark_type) for column in columns])


def all_columns(*, with_headers: bool) -> tuple[Column, ...]:
    return tuple(column for column in Column if with_headers or column is not Column.HEADERS)


def chosen_columns(schema: StructType) -> tuple[Column, ...]:
    """The columns that a reader's own schema names. Naming fewer is how to read less: Spark does not tell a source."""
    known = {column.value: column for column in Column}
    chosen: list[Column] = []
    for field in schema.fields:
        column = known.get(field.name)
        if column is None:
            raise WrongUse(f"there is no column {field.name!r}; a topic has {', '.join(known)}")
        if field.dataType != column.spark_type:
            raise WrongUse(
                f"column {field.name!r} is {column.spark_type.simpleString()}, not {field.dataType.simpleString()};"
                " read it as it is and cast it"
            )
        chosen.append(column)
    if not chosen:
        raise WrongUse("the schema names no column")
    return tuple(chosen)
