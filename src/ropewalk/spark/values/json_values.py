"""Values that are JSON objects → rows, checked against their schema while they are parsed.

What a reader could get wrong
    Parsed by msgspec into dictionaries, and these by Arrow into columns: 0.3 million small objects per second and core. Arrow's own
    reader of JSON is faster by half, but fails a batch for one row, and takes two objects in one value for two rows.
    A key that comes twice in an object counts as it comes last.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pyarrow as pa

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.framing import NotFramed, unframe
from ropewalk.spark.values.json_schema import compile_schema
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.spark.values.shapes import TEXT, Read, Shape, Unfit, read_rows

REST: Final = "_rest"
"""The column of what the schema does not name, as the text of a JSON object."""


class JsonReader:
    def __init__(self, schema: SchemaText, *, is_framed: bool, unknown_fields: str) -> None:
        made = compile_schema(schema)
        self._decode: Final[Callable[[bytes], Any]] = msgspec.json.Decoder(made.check).decode
        self._fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
        self._known: Final = frozenset(field.name for field in made.shape.type)
        if unknown_fields == "keep" and REST in self._known:
            raise WrongUse(f"the schema has a field {REST!r} of its own, where unknown fields would be kept")
        self._is_framed: Final = is_framed
        self._unknown: Final = unknown_fields
        self._shape: Final = _with_rest(made.shape) if unknown_fields == "keep" else made.shape

    def schema(self) -> pa.Schema:
        return pa.schema(list(self._shape.type))

    def read(self, values: pa.Array) -> Read:
        return read_rows(values, self._shape, self._parse)

    def _parse(self, value: bytes) -> object:
        try:
            body = unframe(value)[1] if self._is_framed else value
            row = self._decode(body)
            if self._unknown != "ignore":
                self._take_rest(row, body)
        except msgspec.ValidationError as error:
            raise Unfit(f"does not fit the schema: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unfit(f"is not JSON: {error}") from None
        except NotFramed as error:
            raise Unfit(str(error)) from None
        except RecursionError:
            raise Unfit("is not JSON that can be read: nested too deeply") from None
        return row

    def _take_rest(self, row: dict[str, object], body: bytes) -> None:
        rest = {name: raw for name, raw in self._fields(body).items() if name not in self._known}
        if not rest:
            return
        if self._unknown == "refuse":
            raise Unfit(f"does not fit the schema: it has no field {min(rest)!r}")
        row[REST] = msgspec.json.encode(rest)


def _with_rest(shape: Shape) -> Shape:
    return Shape(pa.struct([*shape.type, pa.field(REST, TEXT)]), shape.adapt)
