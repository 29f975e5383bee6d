"""Values that are Avro → rows: with a number before them by the schema it names, else by the reader's own.

What a reader could get wrong
    What wrote a value is in the registry by its number; what the table wants is the reader's schema. Avro's rules bring the first to
    the second, so a row of any version that the rules allow has the table's columns.
    A writer's schema that cannot be brought to the reader's is the fault of its rows alone.
"""

from collections.abc import Callable
from io import BytesIO
from typing import Any, Final

import fastavro
import pyarrow as pa
from fastavro.read import SchemaResolutionError

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.avro_schema import AvroSchema, compile_schema, parse_schema
from ropewalk.spark.values.framing import NotFramed, unframe
from ropewalk.spark.values.registry import Registry, UnknownSchema
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.spark.values.shapes import Read, Unfit, read_rows

_UNREADABLE: Final = (EOFError, LookupError, ArithmeticError, ValueError, TypeError, StopIteration)
"""What fastavro raises for bytes that are of another schema or of none."""


class AvroReader:
    def __init__(self, schema: SchemaText, registry: Registry | None) -> None:
        """Values are framed if there is a registry to ask for their schemas."""
        self._made: Final[AvroSchema] = compile_schema(schema)
        self._registry: Final = registry
        self._writers: Final[dict[int, Any]] = {}
        self._read: Final[Callable[..., Any]] = fastavro.schemaless_reader

    def schema(self) -> pa.Schema:
        return pa.schema(list(self._made.shape.type))

    def read(self, values: pa.Array) -> Read:
        return read_rows(values, self._made.shape, self._parse)

    def _parse(self, value: bytes) -> object:
        # Where there is no second schema, nothing has to be brought to it, which is quicker.
        writer, wanted, body = self._made.parsed, None, value
        if self._registry is not None:
            try:
                number, body = unframe(value)
            except NotFramed as error:
                raise Unfit(str(error)) from None
            writer = self._writer(number, self._registry)
            wanted = None if writer is self._made.parsed else self._made.parsed
        source = BytesIO(body)
        try:
            row = self._read(source, writer, wanted, return_named_type=self._made.wants_names)
        except SchemaResolutionError as error:
            raise Unfit(f"its schema cannot be brought to the table's: {error}") from None
        except _UNREADABLE as error:
            raise Unfit(f"is not of its Avro schema: {error!r}") from None
        if source.tell() != len(body):
            raise Unfit(f"is not of its Avro schema: {len(body) - source.tell()} bytes follow the record")
        return row

    def _writer(self, number: int, registry: Registry) -> Any:
        writer = self._writers.get(number)
        if writer is None:
            try:
                writer = parse_schema(registry.by_id(number, "avro"))
            except (UnknownSchema, WrongUse) as error:
                raise Unfit(str(error)) from None
            if writer == self._made.parsed:
                writer = self._made.parsed
            self._writers[number] = writer
        return writer
