"""Rows of topics as a query sees them: with columns for what is in values and keys, and without those that cannot be read.

What a reader could get wrong
    There are two ways to columns. `fields` are read by Spark, as its `from_json` does; a format by the readers of `values`, in Python, as archive does.
    The same rows are read in the same way in the query and beside it, where those that cannot be read are set apart (`judging.py`): both go by
    what is here, so that each row is in one of the two.
    A row without event time can belong to no window, and Spark would leave it out without a word: it counts as one that cannot be read.
    A value that is null is a tombstone and no fault; if event time comes from values, it has none.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyspark.errors import PySparkException
from pyspark.sql import functions
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StringType, StructType

from ropewalk.spark.columns import Column
from ropewalk.spark.refusals import Refusal, WrongUse
from ropewalk.spark.values.decoding import ResolvedFormat, ValueFormat, open_reader

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

BadRows: TypeAlias = Literal["dead_letters", "stop", "null"]

ERROR: Final = "ropewalk error"
"""The column of why a row cannot be read, while it is on its way. No field of a schema is called so."""
_PARSED: Final = "ropewalk parsed"
_CORRUPT: Final = "ropewalk corrupt"
NOT_THE_FIELDS: Final = "is no JSON object with such fields"
_TO_DO: Final = "; mend what writes it, or say bad_rows=dead_letters to set such rows apart"


class Unreadable(Refusal, RuntimeError):
    """A row that cannot be read stops the job, because it was told so."""


class RowReading(Struct, frozen=True, kw_only=True):
    fields: str = ""
    """Of values that are JSON, as Spark writes a schema; none if empty."""
    values: ResolvedFormat = ResolvedFormat(ValueFormat())
    keys: ResolvedFormat = ResolvedFormat(ValueFormat())
    event_time: str = ""
    """A column of the view; empty if rows need none."""
    bad_rows: BadRows = "dead_letters"

    @property
    def has_format(self) -> bool:
        return any(each.settings.format != "raw" for each in (self.values, self.keys))

    @property
    def can_fail(self) -> bool:
        """Whether there can be a row that cannot be read."""
        return bool(self.fields) or self.has_format

    def view(self, records: "DataFrame") -> "DataFrame":
        if self.has_format:
            schema = self._view_schema(to_arrow_schema(records.schema, timezone="UTC"))
            return records.mapInArrow(ReadTask(self), from_arrow_schema(schema))
        if not self.can_fail:
            return records
        marked = self.marked(records)
        if self.bad_rows == "dead_letters":
            marked = marked.where(functions.col(f"`{ERROR}`").isNull())
        elif self.bad_rows == "stop":
            marked = marked.where(_or_stop())
        return marked.drop(ERROR)

    def marked(self, records: "DataFrame") -> "DataFrame":
        """With `fields` as Spark reads them, and why a row cannot be read; null where it can."""
        schema = _of_fields(self.fields)
        names = schema.fieldNames()
        parsed = functions.from_json(
            functions.col("value").cast("string"),
            StructType([*schema.fields]).add(_CORRUPT, StringType()),
            {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT},
        )
        others = [functions.col(f"`{name}`") for name in records.columns if name not in names]
        inside = functions.col(f"`{_PARSED}`")
        error = functions.when(
            functions.col("value").isNotNull() & (inside.isNull() | inside[_CORRUPT].isNotNull()),
            NOT_THE_FIELDS,
        )
        read = [inside[name].alias(name) for name in names]
        seen = records.withColumn(_PARSED, parsed).select(*others, *read, error.alias(ERROR))
        if self.event_time in seen.columns:
            missing = functions.when(
                functions.col(f"`{self.event_time}`").isNull(), _no_time(self.event_time)
            )
            seen = seen.withColumn(ERROR, functions.coalesce(functions.col(f"`{ERROR}`"), missing))
        return seen

    def _view_schema(self, records: pa.Schema) -> pa.Schema:
        found = {field.name: field for field in records}
        if self.keys.settings.format != "raw":
            found["key"] = pa.field("key", pa.struct(list(open_reader(self.keys).schema() or ())))
        values = open_reader(self.values).schema()
        if values is not None:
            names = set(values.names)
            found = {name: field for name, field in found.items() if name not in names}
            found |= {field.name: field for field in values}
        return pa.schema(list(found.values()))


class RowReader:
    """By formats, in one task: schemas are taken apart once."""

    def __init__(self, reading: RowReading) -> None:
        self._reading = reading
        self._values = open_reader(reading.values)
        self._keys = open_reader(reading.keys)

    def read(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of the view, then why a row cannot be read."""
        values = self._values.read(rows.column(Column.VALUE.value))
        keys = self._keys.read(rows.column(Column.KEY.value))
        key_faults = pc.binary_join_element_wise("the key", keys.faults, " ")  # null where there is none
        error = pc.coalesce(values.faults, key_faults)
        columns = {name: rows.column(name) for name in rows.schema.names}
        if self._reading.keys.settings.format != "raw":
            columns[Column.KEY.value] = keys.columns
        if self._reading.values.settings.format != "raw":
            fields = dict(zip(_names(values.columns), values.columns.flatten(), strict=True))
            columns = {name: each for name, each in columns.items() if name not in fields} | fields
        if self._reading.event_time in columns:
            missing = pc.and_(pc.is_null(error), pc.is_null(columns[self._reading.event_time]))
            error = pc.if_else(missing, _no_time(self._reading.event_time), error)
        return pa.record_batch({**columns, ERROR: error})


class ReadTask(Struct, frozen=True):
    """What tasks of the query do with rows of topics where values or keys have a format."""

    reading: RowReading

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = RowReader(self.reading)
        for rows in batches:
            read = reader.read(rows)
            error = read.column(ERROR)
            seen = read.select([name for name in read.schema.names if name != ERROR])
            if error.null_count == len(error) or self.reading.bad_rows == "null":
                yield seen
            elif self.reading.bad_rows == "dead_letters":
                yield seen.filter(pc.is_null(error))
            else:
                at = pc.index(pc.is_valid(error), True).as_py()
                place = [rows.column(name)[at].as_py() for name in ("topic", "partition", "offset")]
                raise Unreadable(f"{place[0]}-{place[1]} offset {place[2]} {error[at].as_py()}{_TO_DO}")


def _or_stop() -> "Expression":
    """True for rows that can be read; others end the task."""
    error = functions.col(f"`{ERROR}`")
    said = functions.concat(
        functions.col("topic"),
        functions.lit("-"),
        functions.col("partition").cast("string"),
        functions.lit(" offset "),
        functions.col("offset").cast("string"),
        functions.lit(" "),
        error,
        functions.lit(_TO_DO),
    )
    return functions.when(error.isNull(), True).otherwise(functions.raise_error(said).cast("boolean"))


def _of_fields(text: str) -> StructType:
    try:
        found = StructType.fromDDL(text)
    except PySparkException as error:
        said = str(error).strip().splitlines()[0]
        raise WrongUse(f"fields is {text!r}, must be like 'item string, amount double': {said}") from None
    if not isinstance(found, StructType):
        raise WrongUse(f"fields is {text!r}, must name columns, like 'item string, amount double'")
    return found


def _no_time(column: str) -> str:
    return f"has no event time in {column}"


def _names(columns: pa.StructArray) -> list[str]:
    return [field.name for field in columns.type]
