"""Which columns a frame brings to the sink, checked before anything runs; and the rows of tasks, gathered and by topic.

As in Spark's own Kafka sink: `value` there must be, text or bytes; `key`, `headers`, `topic` and `partition` there may be, and
`timestamp` beyond it. `offset` and `timestampType`, which the source has, say nothing here and are passed over.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, DataType, IntegerType, StringType, StructType

from ropewalk.spark.columns import Column
from ropewalk.spark.numbers import column_of, numbers_in
from ropewalk.spark.refusals import WrongUse

GATHERED_BYTES: Final = 4 << 20
"""Rows are encoded so many at a time: enough to fill batches of several partitions."""

_PASSED_OVER: Final = (Column.OFFSET, Column.TIMESTAMP_TYPE)
_TEXT_OR_BYTES: Final[tuple[DataType, ...]] = (StringType(), BinaryType())


def check_columns(schema: StructType, topic: str | None) -> tuple[Column, ...]:
    """Those that will be written. Refuses what cannot be with `WrongUse`."""
    known = {column.value: column for column in Column}
    found: list[Column] = []
    for field in schema.fields:
        column = known.get(field.name)
        if column is None:
            names = ", ".join(name for name in known if known[name] not in _PASSED_OVER)
            raise WrongUse(
                f"there is no column {field.name!r} in a record; it has {names}. Drop it, or put it into value"
            )
        if column in _PASSED_OVER:
            continue
        if not any(_is(field.dataType, allowed) for allowed in _allowed(column)):
            allowed = " or ".join(each.simpleString() for each in _allowed(column))
            raise WrongUse(
                f"column {field.name!r} is {field.dataType.simpleString()}, must be {allowed}; cast it"
            )
        found.append(column)
    if Column.VALUE not in found:
        raise WrongUse(
            'there is no column "value", which every record has; name one so: .selectExpr("… as value")'
        )
    if topic is None and Column.TOPIC not in found:
        raise WrongUse('say where to write to: .option("topic", "…"), or a column "topic" in every row')
    if topic is not None and Column.TOPIC in found:
        found.remove(Column.TOPIC)  # the option counts, as in Spark's own sink
    return tuple(found)


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Larger ones, of the same rows in the same order."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= GATHERED_BYTES:
            yield _joined(held)
            held, held_bytes = [], 0
    if held:
        yield _joined(held)


def by_topic(
    batch: pa.RecordBatch, columns: tuple[Column, ...], topic: str | None
) -> Iterator[tuple[str, Mapping[Column, pa.Array]]]:
    """The columns of each topic's rows. Refuses a row without a topic with `WrongUse`."""
    named = {column: batch.column(column.value) for column in columns}
    if topic is not None:
        yield topic, named
        return
    topics = named.pop(Column.TOPIC)
    if topics.null_count:
        raise WrongUse("a row has null for a topic; every row needs one, or all of them the option topic")
    coded = topics.dictionary_encode()
    if len(coded.dictionary) == 1:
        yield coded.dictionary[0].as_py(), named
        return
    codes = numbers_in(coded.indices)
    for code, name in enumerate(coded.dictionary.to_pylist()):
        chosen = column_of(np.flatnonzero(codes == code))
        yield name, {column: array.take(chosen) for column, array in named.items()}


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _allowed(column: Column) -> tuple[DataType, ...]:
    match column:
        case Column.KEY | Column.VALUE:
            return _TEXT_OR_BYTES
        case Column.PARTITION:
            return (IntegerType(),)
        case _:
            return (column.spark_type,)


def _is(given: DataType, allowed: DataType) -> bool:
    """Whether or not parts of it may be null."""
    return given.simpleString() == allowed.simpleString()
