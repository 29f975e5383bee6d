"""Descriptors of Protobuf → columns, and how a message's fields are taken out of it.

What a reader could get wrong
    A field without presence that was not set has its default, as everywhere in Protobuf; one with presence is null.
    An enum's value is its name, and for a number without one the number as text: newer writers know more of them.
    Unsigned numbers of 64 bits do not fit a column of whole numbers and become decimals of 20 digits.
    Messages whose form is open (Struct, Value, Any and the like, and those without any field) are kept as JSON text.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pyarrow as pa
from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.spark.values.shapes import BYTES, INSTANT, REAL, TEXT, WHOLE, Unfit

Take: TypeAlias = Callable[[Any], object]
"""From a value as Protobuf holds it to one that Arrow takes."""

_SCALARS: Final[dict[int, pa.DataType]] = {
    1: REAL,  # double
    2: REAL,  # float
    3: WHOLE,  # int64
    4: pa.decimal128(20, 0),  # uint64
    5: WHOLE,  # int32
    6: pa.decimal128(20, 0),  # fixed64
    7: WHOLE,  # fixed32
    8: pa.bool_(),
    9: TEXT,
    12: BYTES,
    13: WHOLE,  # uint32
    15: WHOLE,  # sfixed32
    16: WHOLE,  # sfixed64
    17: WHOLE,  # sint32
    18: WHOLE,  # sint64
}
_ENUM: Final = 14
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_OPEN: Final = frozenset(
    f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue", "Any", "FieldMask")
)


def load_pool(schema: SchemaText) -> tuple[Any, list[str]]:
    """A pool with the schema's files, and the names of the files that the schema itself is, without what it refers to."""
    files = [_file(each) for each in schema.dependencies()]
    own = _files(schema)
    names = [each.name for each in own]
    pool = descriptor_pool.DescriptorPool()
    waiting = {each.name: each for each in (*files, *own)}
    try:
        for each in list(waiting.values()):
            _add(pool, each, waiting)
        for name in names:
            pool.FindFileByName(name)
    except (TypeError, KeyError) as error:
        raise WrongUse(
            f"the descriptors are not complete: {error}; make them with protoc --include_imports"
        ) from None
    return pool, names


def _add(pool: Any, file: Any, waiting: dict[str, Any]) -> None:
    """After everything it imports; Google's own files are known here, so nobody has to bring them."""
    if waiting.pop(file.name, None) is None:
        return
    for name in file.dependency:
        if name in waiting:
            _add(pool, waiting[name], waiting)
        elif name.startswith("google/protobuf/"):
            _add_known(pool, name)
    pool.Add(file)


def _add_known(pool: Any, name: str) -> None:
    from google.protobuf import (  # noqa: F401  # importing them is what makes the default pool know them
        any_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )

    try:
        pool.FindFileByName(name)
    except KeyError:
        known = FileDescriptorProto()
        descriptor_pool.Default().FindFileByName(name).CopyToProto(known)
        pool.Add(known)


def _files(schema: SchemaText) -> list[Any]:
    """A set of them, as compilers write it, or one file, as registries answer."""
    if not schema.is_set:
        return [_file(schema)]
    try:
        files = list(FileDescriptorSet.FromString(base64.b64decode(schema.text)).file)
    except DecodeError:
        files = []
    if not files:
        raise WrongUse(
            "the schema's file is no set of descriptors; make it with protoc --include_imports --descriptor_set_out=FILE"
        )
    return files


def _file(schema: SchemaText) -> Any:
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
    except (DecodeError, binascii.Error):
        raise WrongUse("the registry's schema of Protobuf is not base64 of a file's descriptor") from None
    # A registry does not know a file's name; whoever imports it calls it by its reference.
    file.name = schema.name or file.name or "schema.proto"
    return file


def find_message(pool: Any, files: list[str], name: str | None) -> Any:
    if name is None:
        messages = list(pool.FindFileByName(files[-1]).message_types_by_name.values()) if files else []
        if not messages:
            raise WrongUse("the descriptors hold no message; say which file's they should be")
        return messages[0]
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        raise WrongUse(f"the descriptors hold no message {name!r}; name it with its package") from None


def message_at(pool: Any, files: list[str], path: tuple[int, ...]) -> Any:
    """The message that a prefix means by its path of indexes; None where there is none."""
    found, level = None, list(pool.FindFileByName(files[-1]).message_types_by_name.values())
    for index in path:
        if not 0 <= index < len(level):
            return None
        found = level[index]
        level = list(found.nested_types)
    return found


def path_of(message: Any) -> tuple[int, ...]:
    outer = message.containing_type
    level = message.file.message_types_by_name.values() if outer is None else outer.nested_types
    index = [each.full_name for each in level].index(message.full_name)
    return (index,) if outer is None else (*path_of(outer), index)


def message_class(message: Any) -> Any:
    return message_factory.GetMessageClass(message)


def compile_message(message: Any, pool: Any) -> tuple[pa.DataType, Take]:
    """The type of its columns, and what makes a row of it."""
    return _Compiler(pool).fields(message, "$", ())


class _Compiler:
    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def fields(self, message: Any, at: str, within: tuple[str, ...]) -> tuple[pa.DataType, Take]:
        if message.full_name in within:
            raise WrongUse(f"Protobuf: {at} contains {message.full_name} in itself, which is no column")
        within = (*within, message.full_name)
        if not message.fields:
            raise WrongUse(f"Protobuf: {message.full_name} has no field, so there would be no column")
        types: list[pa.Field] = []
        always: list[tuple[str, Take | None]] = []
        present: list[tuple[str, Take | None]] = []
        for field in message.fields:
            type_, take = self._field(field, f"{at}.{field.name}", within)
            types.append(pa.field(field.name, type_))
            (present if field.has_presence else always).append((field.name, take))

        def row(value: Any) -> object:
            made = {
                name: getattr(value, name) if take is None else take(getattr(value, name))
                for name, take in always
            }
            for name, take in present:
                if value.HasField(name):
                    made[name] = getattr(value, name) if take is None else take(getattr(value, name))
            return made

        return pa.struct(types), row

    def _field(self, field: Any, at: str, within: tuple[str, ...]) -> tuple[pa.DataType, Take | None]:
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            key_type, key = self._single(message.fields_by_name["key"], f"{at}.key", within)
            type_, take = self._single(message.fields_by_name["value"], f"{at}.*", within)
            return pa.map_(key_type, type_), _map_of(key, take)
        type_, take = self._single(field, at, within)
        if field.is_repeated:
            return pa.list_(pa.field("element", type_)), _list_of(take)
        return type_, take

    def _single(self, field: Any, at: str, within: tuple[str, ...]) -> tuple[pa.DataType, Take | None]:
        if field.type == _ENUM:
            names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
            return TEXT, lambda number: names.get(number) or str(number)
        message = field.message_type
        if message is None:
            return _SCALARS[field.type], None
        match message.full_name:
            case "google.protobuf.Timestamp":
                return INSTANT, lambda value: value.seconds * 1_000_000 + value.nanos // 1000
            case "google.protobuf.Duration":
                return WHOLE, lambda value: value.seconds * 1_000_000 + int(value.nanos / 1000)
            case name if name in _WRAPPERS:
                return _SCALARS[message.fields_by_name["value"].type], lambda value: value.value
            case name if name in _OPEN or not message.fields:
                return TEXT, self._as_json
        return self.fields(message, at, within)

    def _as_json(self, value: Any) -> object:
        try:
            return json_format.MessageToJson(value, indent=None, descriptor_pool=self._pool)
        except (json_format.Error, TypeError, ValueError) as error:
            raise Unfit(f"cannot be written as JSON: {error}") from None


def _list_of(take: Take | None) -> Take:
    return list if take is None else lambda items: [take(item) for item in items]


def _map_of(key: Take | None, take: Take | None) -> Take:
    assert key is None  # keys of maps are text or numbers
    return lambda items: [(name, item if take is None else take(item)) for name, item in items.items()]
