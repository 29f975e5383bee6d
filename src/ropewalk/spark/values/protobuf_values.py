"""Values that are messages of Protobuf → rows.

What a reader could get wrong
    Messages are read by the reader's own descriptor, whoever wrote them: that is how Protobuf's versions agree. A registry is asked
    only which message of its file a value is, so that no other message is read as if it were this one.
    Bytes that are another message can be a message of this type all the same; without a prefix nothing can tell.
"""

from typing import Any, Final

import pyarrow as pa
from google.protobuf.message import DecodeError

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.framing import NotFramed, take_message_path, unframe
from ropewalk.spark.values.protobuf_schema import (
    compile_message,
    find_message,
    load_pool,
    message_at,
    message_class,
    path_of,
)
from ropewalk.spark.values.registry import Registry, UnknownSchema
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.spark.values.shapes import Read, Shape, Unfit, read_rows


class ProtobufReader:
    def __init__(
        self, schema: SchemaText, message: str | None, *, is_framed: bool, registry: Registry | None
    ) -> None:
        pool, files = load_pool(schema)
        found = find_message(pool, files, message)
        self._name: Final[str] = found.full_name
        self._path: Final = path_of(found)
        type_, self._row = compile_message(found, pool)
        self._shape: Final = Shape(type_)
        self._class: Final[Any] = message_class(found)
        self._is_framed: Final = is_framed
        self._registry: Final = registry
        self._checked: Final[dict[tuple[int, tuple[int, ...]], str | None]] = {}
        """What is wrong with messages of this schema's number and path; None for nothing."""

    def schema(self) -> pa.Schema:
        return pa.schema(list(self._shape.type))

    def read(self, values: pa.Array) -> Read:
        return read_rows(values, self._shape, self._parse)

    def _parse(self, value: bytes) -> object:
        body = self._unframed(value) if self._is_framed else value
        try:
            return self._row(self._class.FromString(body))
        except DecodeError as error:
            raise Unfit(f"is not a message {self._name}: {error}") from None

    def _unframed(self, value: bytes) -> bytes:
        try:
            number, rest = unframe(value)
            path, body = take_message_path(rest)
        except NotFramed as error:
            raise Unfit(str(error)) from None
        if (number, path) not in self._checked:
            self._checked[number, path] = self._wrong_message(number, path)
        fault = self._checked[number, path]
        if fault is not None:
            raise Unfit(fault)
        return body

    def _wrong_message(self, number: int, path: tuple[int, ...]) -> str | None:
        if self._registry is None:
            if path != self._path:
                return f"is message {list(path)} of its file, and {self._name} is {list(self._path)}"
            return None
        try:
            pool, files = load_pool(self._registry.by_id(number, "protobuf"))
        except (UnknownSchema, WrongUse) as error:
            return str(error)
        found = message_at(pool, files, path)
        if found is None or found.full_name != self._name:
            named = "no message" if found is None else f"message {found.full_name}"
            return f"is {named} of schema {number}, not {self._name}"
        return None
