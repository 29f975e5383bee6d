"""What Spark calls: `frame.write.format("ropewalk")` and `frame.writeStream.format("ropewalk")`.

What a reader could get wrong
    Writers are pickled and sent to executors, so they hold options and no connection. `write` runs once per attempt of a task.
    There is no step in which all tasks' rows become visible at once: a plain task's are visible when they are acknowledged, a
    transaction's when it is committed. `commit` on the driver only looks at whether everybody was there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ropewalk.spark.columns import Column
from ropewalk.spark.connector_options import tell_meaningless
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.sink.incoming import check_columns
from ropewalk.spark.sink.options import SinkOptions, parse_sink

_BATCH_PROPERTY: Final = "streaming.sql.batchId"
_QUERY_PROPERTY: Final = "sql.streaming.queryId"


@dataclass
class Written(WriterCommitMessage):
    task: int
    row_count: int


def batch_writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> "BatchWriter":
    if overwrite:
        raise WrongUse('a topic is appended to and not overwritten: .mode("append")')
    options = parse_sink(given, streaming=False)
    tell_meaningless(options.meaningless)
    return BatchWriter(options, check_columns(schema, options.topic))


def stream_writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> "StreamWriter":
    if overwrite:
        raise WrongUse('a topic is appended to and not overwritten: .outputMode("append") or "update"')
    options = parse_sink(given, streaming=True)
    tell_meaningless(options.meaningless)
    return StreamWriter(options, check_columns(schema, options.topic))


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, columns: tuple[Column, ...]) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, self._columns, iterator)

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        _check_tasks(self._options, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, columns: tuple[Column, ...]) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, self._columns, iterator)

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803
        del batchId
        _check_tasks(self._options, messages)


def _write(
    options: SinkOptions, columns: tuple[Column, ...], batches: Iterator[pa.RecordBatch]
) -> WriterCommitMessage:
    context = TaskContext.get()
    assert context is not None, "only tasks write"
    task = context.partitionId()
    if options.exactly_once is None:
        from ropewalk.spark.sink.writing import (
            write,
        )  # here, as in `source.py`: tasks alone need the compiled loops

        return Written(task, write(options, columns, batches))
    from ropewalk.spark.sink.transaction import write_once

    query = options.exactly_once.query or context.getLocalProperty(_QUERY_PROPERTY)
    batch = options.exactly_once.batch
    if batch is None:
        told = context.getLocalProperty(_BATCH_PROPERTY)
        batch = None if told is None else int(told)
    if query is None or batch is None:
        raise WrongUse(
            "exactlyOnce needs to know which batch of which query this is: use writeStream, or give the options query and batch"
        )
    row_count, _ = write_once(options, columns, batches, task=task, query=query, batch=batch)
    return Written(task, row_count)


def _check_tasks(options: SinkOptions, messages: "Sequence[WriterCommitMessage | None]") -> None:
    """Fewer tasks than were announced: rows are where the next batch would not look for them."""
    if options.exactly_once is None:
        return
    count = len(messages)
    if count != options.exactly_once.tasks:
        raise WrongUse(
            f"{count} tasks have written, and tasks={options.exactly_once.tasks}: write"
            f" .repartition({options.exactly_once.tasks}, …) before the sink, and begin with a new checkpoint and another name"
        )
