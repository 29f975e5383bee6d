"""Avro's schemas → columns.

What a reader could get wrong
    fastavro reads dates, decimals and the like by the writer's schema; the columns are the reader's. Where the two differ in that,
    a value comes here as the other kind, so adaptations take either.
    Of a union of more than null and one type, each type becomes a field `member0`, `member1`, … of which one is set, as in Spark's
    own reader of Avro. Which one is known from the object's Python type, or for named types by their name: fastavro then hands out pairs.
"""

import datetime
import decimal
import json
import uuid
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException, UnknownType

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.spark.values.shapes import (
    BYTES,
    DECIMAL_DIGITS_MAX,
    INSTANT,
    REAL,
    TEXT,
    WHOLE,
    Adapt,
    Shape,
    Unfit,
    list_shape,
    map_shape,
    struct_shape,
)

LOCAL: Final = pa.timestamp("us")
_NAMED: Final = ("record", "error", "enum", "fixed")


class AvroSchema(NamedTuple):
    parsed: Any
    """As fastavro wants it; its own kind of dictionary."""
    shape: Shape
    wants_names: bool
    """Whether fastavro must tell of what named type an object in a union is."""


def parse_schema(schema: SchemaText) -> Any:
    """As fastavro wants it. Raises `WrongUse` for what is no schema."""
    named: dict[str, Any] = {}
    try:
        for each in schema.dependencies():
            fastavro.parse_schema(_plain(json.loads(each.text)), named_schemas=named)
        return fastavro.parse_schema(_plain(json.loads(schema.text)), named_schemas=named)
    except (ValueError, TypeError, LookupError, SchemaParseException) as error:
        raise WrongUse(f"not a schema of Avro: {_said(error)}") from None


def _said(error: Exception) -> str:
    match error:
        case UnknownType(name=name):
            return f"there is no type {str(name)[:80]!r}"
        case json.JSONDecodeError():
            return f"it is not JSON: {error}"
        case KeyError():
            return f"a type of it lacks {error}"
        case TypeError():
            return f"it is put together in another way: {error}"
        case _:
            return str(error)


def _plain(schema: Any) -> Any:
    """Without what makes objects of texts that would be texts again in the next moment."""
    match schema:
        case list():
            return [_plain(each) for each in schema]
        case {"type": "string", "logicalType": "uuid"}:
            return "string"
        case dict():
            return {name: _plain(each) for name, each in schema.items()}
    return schema


def compile_schema(schema: SchemaText) -> AvroSchema:
    """The shape of a row. Refuses what cannot become columns and says where that is."""
    parsed = parse_schema(schema)
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise WrongUse("the Avro schema must be a record; read other values as raw")
    wants_names = _has_wide_union(parsed, parsed["__named_schemas"], set())
    shape = _Compiler(parsed["__named_schemas"], wants_names).shape(parsed, "$", ())
    return AvroSchema(parsed, shape, wants_names)


class _Compiler:
    def __init__(self, named: dict[str, Any], unwraps: bool) -> None:
        self._named = named
        self._unwraps = unwraps

    def shape(self, schema: Any, at: str, within: tuple[str, ...]) -> Shape:
        if isinstance(schema, list):
            return self._union(schema, at, within)
        if isinstance(schema, str):
            if schema in self._named:
                return self.shape(self._named[schema], at, within)
            schema = {"type": schema}
        kind = schema["type"]
        if not isinstance(kind, str) or kind in self._named:
            return self.shape(kind, at, within)
        match kind:
            case "record" | "error":
                return self._unwrapped(self._record(schema, at, within))
            case "array":
                return list_shape(self.shape(schema["items"], f"{at}[]", within))
            case "map":
                return map_shape(self.shape(schema["values"], f"{at}.*", within))
            case "enum":
                return self._unwrapped(Shape(TEXT))
            case "fixed":
                return self._unwrapped(_scalar(schema, at))
        return _scalar(schema, at)

    def _record(self, schema: Any, at: str, within: tuple[str, ...]) -> Shape:
        name = schema["name"]
        if name in within:
            raise WrongUse(f"Avro schema: {at} contains record {name} in itself, which is no column")
        if not schema["fields"]:
            raise WrongUse(f"Avro schema: {at} is a record without fields, which is no column")
        return struct_shape(
            {
                field["name"]: self.shape(field["type"], f"{at}.{field['name']}", (*within, name))
                for field in schema["fields"]
            }
        )

    def _union(self, branches: list[Any], at: str, within: tuple[str, ...]) -> Shape:
        others = [each for each in branches if each != "null" and each != {"type": "null"}]
        kinds = {_kind(each) for each in others}
        if not others:
            raise WrongUse(f"Avro schema: {at} is always null, which is no column")
        if kinds <= {"int", "long"} and len(others) == 2:
            return Shape(WHOLE)
        if kinds <= {"int", "long", "float", "double"} and len(others) > 1:
            return Shape(REAL, lambda value: float(value))  # type: ignore[arg-type]  # a number
        if len(others) == 1:
            return self.shape(others[0], at, within)
        if {"int", "long"} <= kinds or {"float", "double"} <= kinds:
            others = [each for each in others if _kind(each) not in ("int", "float")]
        shapes = [self.shape(each, f"{at}.member{index}", within) for index, each in enumerate(others)]
        names = [self._full_name(each) for each in others]
        tests = [_test_of(each, self._named) for each in others]

        def adapt(value: object) -> object:
            index = _member(value, names, tests)
            change = shapes[index].adapt
            return {f"member{index}": value if change is None else change(value)}

        return Shape(pa.struct([(f"member{index}", each.type) for index, each in enumerate(shapes)]), adapt)

    def _full_name(self, branch: Any) -> str | None:
        if isinstance(branch, str):
            return branch if branch in self._named else None
        return branch["name"] if branch.get("type") in _NAMED else None

    def _unwrapped(self, shape: Shape) -> Shape:
        """Takes named types out of the pairs that fastavro makes of them inside unions."""
        if not self._unwraps:
            return shape
        change = shape.adapt

        def adapt(value: object) -> object:
            bare = value[1] if isinstance(value, tuple) else value
            return bare if change is None else change(bare)

        return Shape(shape.type, adapt)


def _scalar(schema: Any, at: str) -> Shape:
    match schema["type"], schema.get("logicalType"):
        case "bytes" | "fixed", "decimal":
            precision, scale = schema.get("precision"), schema.get("scale", 0)
            if not (type(precision) is type(scale) is int and 0 <= scale <= precision <= DECIMAL_DIGITS_MAX):
                raise WrongUse(
                    f"Avro schema: {at} is a decimal with precision {precision!r} and scale {scale!r};"
                    f" precision goes to {DECIMAL_DIGITS_MAX} and scale to precision"
                )
            return Shape(pa.decimal128(precision, scale), _decimal(scale))
        case "int" | "long", "date":
            return Shape(pa.date32())
        case "long", "timestamp-millis" | "timestamp-micros" as kind:
            return Shape(INSTANT, _instant(1000 if kind == "timestamp-millis" else 1))
        case "long", "local-timestamp-millis" | "local-timestamp-micros" as kind:
            return Shape(LOCAL, _instant(1000 if kind == "local-timestamp-millis" else 1))
        case "int" | "long", "time-millis" | "time-micros" as kind:
            return Shape(WHOLE, _time_of_day(1000 if kind == "time-millis" else 1))
        case "fixed", "uuid":
            return Shape(TEXT, _uuid)
        case "string", _:
            return Shape(TEXT)
        case "bytes" | "fixed", _:
            return Shape(BYTES)
        case "int" | "long", _:
            return Shape(WHOLE)
        case "float" | "double", _:
            return Shape(REAL)
        case "boolean", _:
            return Shape(pa.bool_())
    raise WrongUse(f"Avro schema: {at} has type {schema['type']!r}, which is no column")


def _decimal(scale: int) -> Adapt:
    def adapt(value: object) -> object:
        if isinstance(value, bytes):
            return decimal.Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale)
        return value

    return adapt


def _instant(microseconds: int) -> Adapt:
    return lambda value: value * microseconds if isinstance(value, int) else value


def _time_of_day(microseconds: int) -> Adapt:
    def adapt(value: object) -> object:
        match value:
            case int():
                return value * microseconds
            case datetime.time():
                return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return value

    return adapt


def _uuid(value: object) -> object:
    if isinstance(value, bytes):
        if len(value) != 16:
            raise Unfit(f"does not fit: a UUID of {len(value)} bytes")
        return str(uuid.UUID(bytes=value))
    return str(value)


def _member(value: object, names: list[str | None], tests: list[Callable[[object], bool]]) -> int:
    if isinstance(value, tuple) and value[0] in names:
        return names.index(value[0])
    bare = value[1] if isinstance(value, tuple) else value
    # What comes without a name is of a type without one, or was written by a schema that has no union here.
    for index in sorted(range(len(tests)), key=lambda each: names[each] is not None):
        if tests[index](bare):
            return index
    raise Unfit(f"does not fit: {type(bare).__name__} is none of the union's types")


_PYTHON: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "enum": (str,),
    "bytes": (bytes, decimal.Decimal),
    "fixed": (bytes, decimal.Decimal, uuid.UUID),
    "int": (int, datetime.date, datetime.time),
    "long": (int, datetime.datetime, datetime.time, datetime.date),
    "float": (float,),
    "double": (float,),
    "boolean": (bool,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
    "error": (dict,),
}


def _test_of(branch: Any, named: dict[str, Any]) -> Callable[[object], bool]:
    kind = _kind(named[branch] if isinstance(branch, str) and branch in named else branch)
    types = _PYTHON.get(kind, ())
    takes_bool = kind == "boolean"
    return lambda value: isinstance(value, types) and (takes_bool or not isinstance(value, bool))


def _kind(branch: Any) -> str:
    kind = branch
    while isinstance(kind, dict):
        kind = kind["type"]
    if not isinstance(kind, str):
        raise WrongUse("not a schema of Avro: a union directly inside a union")
    return kind


def _has_wide_union(schema: Any, named: dict[str, Any], seen: set[str]) -> bool:
    match schema:
        case list():
            others = [each for each in schema if each != "null"]
            return len(others) > 1 or any(_has_wide_union(each, named, seen) for each in others)
        case str():
            if schema in seen or schema not in named:
                return False
            seen.add(schema)
            return _has_wide_union(named[schema], named, seen)
        case dict():
            parts = [schema.get("items"), schema.get("values")]
            parts += [field["type"] for field in schema.get("fields", [])]
            return any(_has_wide_union(each, named, seen) for each in parts if each is not None)
    return False
