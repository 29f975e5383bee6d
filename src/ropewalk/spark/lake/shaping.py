"""Rows of a topic → rows of a table: what is new of them, with the columns that the table is partitioned by. Arrow in, Arrow out.

What a reader could get wrong
    `date` and `hour` are those of the record's timestamp in UTC, whatever the session's time zone is.
    Timestamps are whatever producers wrote. One outside the years 1 to 9999 has no date that readers could parse: its date is null.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ropewalk.spark.columns import Column, all_columns
from ropewalk.spark.lake.conforming import conform
from ropewalk.spark.numbers import column_of, is_valid, numbers_in

PartitionBy: TypeAlias = Literal["date", "hour", "none"]

DAY_US: Final = 86_400_000_000
HOUR_US: Final = 3_600_000_000
DATE_MIN: Final = -719_162
"""The first day of the year 1, in days since 1970."""
DATE_MAX: Final = 2_932_896
"""The last day of the year 9999."""

DATE: Final = pa.field("date", pa.date32())
HOUR: Final = pa.field("hour", pa.int32())
TOPIC_ID: Final = pa.field("topic_id", pa.string())
"""Which of several topics that had the name one after the other; null in rows from before the table had the column."""
_TIME_FIELDS: Final[Mapping[PartitionBy, tuple[pa.Field, ...]]] = {
    "date": (DATE,),
    "hour": (DATE, HOUR),
    "none": (DATE,),
}


def raw_schema(partition_by: PartitionBy, *, with_topic_id: bool = False) -> pa.Schema:
    """The columns of the source, then `date`."""
    fields = [pa.field(column.value, column.arrow_type) for column in all_columns(with_headers=True)]
    identity = (TOPIC_ID,) if with_topic_id else ()
    return pa.schema([*fields, *_TIME_FIELDS[partition_by], *identity])


def partition_columns(partition_by: PartitionBy, *, several_topics: bool) -> tuple[str, ...]:
    times = {"date": ("date",), "hour": ("date", "hour"), "none": ()}[partition_by]
    return (("topic",) if several_topics else ()) + times


def with_times(rows: pa.RecordBatch, schema: pa.Schema, topic_id: str | None = None) -> pa.RecordBatch:
    """As the table has them: in its order and types, with those of `date`, `hour` and `topic_id` that it has. What rows lack is null."""
    columns = {name: rows.column(name) for name in rows.schema.names}
    if topic_id is not None and TOPIC_ID.name in schema.names:
        columns[TOPIC_ID.name] = pa.repeat(topic_id, rows.num_rows)
    if DATE.name in schema.names:
        columns |= _times(columns[Column.TIMESTAMP.value])
    arrays = [
        conform(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.record_batch(arrays, schema=schema.remove_metadata())


def _times(timestamps: pa.Array) -> dict[str, pa.Array]:
    instants = timestamps.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    numbers = numbers_in(instants)  # where it is null any number, which is not looked at
    days = numbers // DAY_US
    known = is_valid(instants) & (days >= DATE_MIN) & (days <= DATE_MAX)
    days = np.where(known, days, 0).astype(np.int32)
    hours = (numbers // HOUR_US % 24).astype(np.int32)
    return {
        DATE.name: column_of(days, present=known).cast(pa.date32()),
        HOUR.name: column_of(hours, present=known),
    }


def by_values(
    rows: pa.RecordBatch, columns: Sequence[str]
) -> list[tuple[tuple[str | None, ...], pa.RecordBatch]]:
    """The rows of each combination of values, as text; rows keep their order within one."""
    if not columns or not rows.num_rows:
        return [((), rows)] if rows.num_rows else []
    pieces: list[tuple[tuple[str | None, ...], pa.RecordBatch]] = [((), rows)]
    for name in columns:
        pieces = [
            ((*values, value), piece) for values, whole in pieces for value, piece in _by_value(whole, name)
        ]
    return pieces


def _by_value(rows: pa.RecordBatch, name: str) -> list[tuple[str | None, pa.RecordBatch]]:
    column = rows.column(name)
    distinct = pc.unique(column)
    texts = distinct.cast(pa.string()).to_pylist()
    if len(texts) == 1:
        return [(texts[0], rows)]
    codes = pc.index_in(column, value_set=distinct)
    return [(text, rows.filter(pc.equal(codes, code))) for code, text in enumerate(texts)]
