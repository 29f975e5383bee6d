"""Rows of a topic, by what is in their values: those that can be read, in columns, and those that cannot, as they are and with the reason."""

from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ropewalk.spark.columns import Column
from ropewalk.spark.lake.column_names import check_names
from ropewalk.spark.values.decoding import ValueReader

ERROR: Final = pa.field("error", pa.string())
"""Why a row is a dead letter: the one column that it has more than a row of a topic."""


class Judged(NamedTuple):
    good: pa.RecordBatch
    bad: pa.RecordBatch


def judge(rows: pa.RecordBatch, reader: ValueReader) -> Judged:
    """Every row is in one of the two. A null value is good: it is a tombstone, and its columns are null."""
    at = rows.schema.get_field_index(Column.VALUE.value)
    read = reader.read(rows.column(at))
    is_good = pc.is_null(read.faults)
    good = rows if reader.schema() is None else rows.set_column(at, Column.VALUE.value, read.columns)
    bad = rows.append_column(ERROR, read.faults)
    return Judged(good.filter(is_good), bad.filter(pc.invert(is_good)))


def value_schema(topic: pa.Schema, values: pa.Schema | None) -> pa.Schema:
    """The columns of a topic's rows, with those of its values inside `value`. What `topic` has there before is replaced. Raises
    `WrongUse` for names that no column can have."""
    if values is None:
        return topic
    check_names(values, f"{Column.VALUE.value}.")
    at = topic.get_field_index(Column.VALUE.value)
    return topic.set(at, pa.field(Column.VALUE.value, pa.struct(list(values))))


def dead_letter_schema(topic: pa.Schema) -> pa.Schema:
    """The columns of a topic's rows, values as they are, and why they could not be read."""
    return topic.append(ERROR)
