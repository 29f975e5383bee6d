"""JSON Schema → columns, and the type by which msgspec checks a value while it parses it.

What a reader could get wrong
    A keyword that would have to be checked and cannot be is refused here, when the pipeline starts; no value is let pass unchecked.
    What has no type is kept as JSON text. `format` is a note except for date-time, date, int32 and decimal.
    Of "additionalProperties: false" nothing is checked beside columns: what becomes of unknown fields is a setting of the pipeline.
    All columns may be null in the table, also required ones: a field may stop being required, and a table cannot take that back.
"""

import datetime
import decimal
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, TypedDict, Union

import msgspec
import pyarrow as pa

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.json_keywords import OWN, RULES, refuse_malformed, refuse_unchecked
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.spark.values.shapes import (
    BYTES,
    DECIMAL_DIGITS_MAX,
    INSTANT,
    REAL,
    TEXT,
    WHOLE,
    Shape,
    list_shape,
    map_shape,
    struct_shape,
)

DECIMAL_SCALE: Final = 9
"""Digits behind the point of a decimal that does not say how many: `"format": "decimal", "precision": 18, "scale": 2`."""

_INT64: Final = {"ge": -(2**63), "le": 2**63 - 1}
_INT32: Final = {"ge": -(2**31), "le": 2**31 - 1}


class Typed(NamedTuple):
    shape: Shape
    check: Any
    """A type in msgspec's sense; types are values here, and Python has no type for that."""
    may_be_null: bool = False


def compile_schema(schema: SchemaText) -> Typed:
    """The shape of a row. Refuses what cannot become columns and says where that is."""
    documents = {each.name: _parse(each) for each in schema.dependencies()}
    documents[""] = root = _parse(schema)
    made = _Compiler(documents).typed(root, "$", "", ())
    if not pa.types.is_struct(made.shape.type):
        raise WrongUse('the JSON schema must describe an object with "properties"; read other values as raw')
    return made


def _parse(schema: SchemaText) -> object:
    try:
        return json.loads(schema.text)
    except ValueError as error:
        raise WrongUse(
            f"the JSON schema{f' {schema.name}' if schema.name else ''} is not JSON: {error}"
        ) from None


class _Compiler:
    def __init__(self, documents: Mapping[str, object]) -> None:
        self._documents = documents

    def typed(self, schema: object, at: str, document: str, within: tuple[str, ...]) -> Typed:
        """`document` is where references begin that name none; `within` the references that led here."""
        match schema:
            case True:
                return _any_json()
            case {"$ref": str(reference)}:
                if reference in within:
                    raise WrongUse(
                        f"JSON schema: {at} contains itself by {reference}; leave its type out there to keep JSON text"
                    )
                owner, found = self._find(reference, document, at)
                return self.typed(found, at, owner, (*within, reference))
            case {"anyOf": list(choices)} | {"oneOf": list(choices)}:
                others = [each for each in choices if each != {"type": "null"}]
                if len(others) == len(choices) or len(others) != 1:
                    raise WrongUse(
                        f"JSON schema: {at} is one of several; only null and one other can be a column."
                        " Leave its type out to keep it as JSON text"
                    )
                return self.typed(others[0], at, document, within)._replace(may_be_null=True)
            case dict():
                return self._of_type(schema, at, document, within)
        raise WrongUse(f"JSON schema: {at} is {schema!r}, which is no schema")

    def _of_type(self, schema: dict[str, Any], at: str, document: str, within: tuple[str, ...]) -> Typed:
        refuse_malformed(schema, at)
        kind, may_be_null = _type_of(schema, at)
        if kind is None:
            refuse_unchecked(schema, set(), at)
            return _any_json()
        rules = RULES[kind]
        refuse_unchecked(schema, {"type", "enum", "const", *rules, *OWN.get(kind, ())}, at)
        meta = {rules[keyword]: schema[keyword] for keyword in rules if keyword in schema}
        if "enum" in schema or "const" in schema:
            return _listed(schema, kind, may_be_null, at)
        match kind:
            case "object":
                made = self._object(schema, at, document, within)
            case "array":
                element = self.typed(schema.get("items", True), f"{at}[]", document, within)
                made = Typed(list_shape(element.shape), list[_nullable(element)])  # type: ignore[misc]  # a type made here
            case _:
                made = _scalar(schema, kind, meta, at)
        try:
            check = Annotated[made.check, msgspec.Meta(**meta)] if meta else made.check
            msgspec.json.Decoder(check)
        except (TypeError, ValueError, re.error) as error:
            raise WrongUse(f"JSON schema: {at}: {error}") from None
        return Typed(made.shape, check, may_be_null)

    def _object(self, schema: dict[str, Any], at: str, document: str, within: tuple[str, ...]) -> Typed:
        properties = schema.get("properties")
        if not properties:
            rest = schema.get("additionalProperties", True)
            if rest is False:
                raise WrongUse(f"JSON schema: {at} is an object that may have no field, which is no column")
            value = self.typed(rest, f"{at}.*", document, within)
            return Typed(map_shape(value.shape), dict[str, _nullable(value)])  # type: ignore[misc]  # a type made here
        required = schema.get("required", [])
        missing = [name for name in required if name not in properties]
        if missing:
            raise WrongUse(f"JSON schema: {at} requires {missing[0]!r}, which is not among its properties")
        shapes: dict[str, Shape] = {}
        fields: dict[str, Any] = {}
        for name, field in properties.items():
            made = self.typed(field, f"{at}.{name}", document, within)
            shapes[name] = made.shape
            # Null and nothing are the same in a column, so a field that may be missing may be null.
            fields[name] = _nullable(made) if name in required else NotRequired[_or_null(made)]
        return Typed(struct_shape(shapes), TypedDict(at, fields))  # type: ignore[operator]  # its fields are known at run time only

    def _find(self, reference: str, document: str, at: str) -> tuple[str, object]:
        name, _, pointer = reference.partition("#")
        owner = name or document
        found = self._documents.get(owner)
        for step in filter(None, pointer.split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            raise WrongUse(f"JSON schema: {at} refers to {reference!r}, which is not there")
        return owner, found


def _type_of(schema: dict[str, Any], at: str) -> tuple[str | None, bool]:
    given = schema.get("type")
    if given is None:
        if "properties" in schema:
            return "object", False
        values = [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]
        kinds = {_KIND_OF.get(type(value)) for value in values if value is not None}
        if not kinds:
            return None, False
        if len(kinds) != 1 or None in kinds:
            raise WrongUse(f"JSON schema: {at} lists values of several types, which are no column")
        return kinds.pop(), None in values
    kinds = {given} if isinstance(given, str) else set(given)
    may_be_null = "null" in kinds
    kinds.discard("null")
    if kinds == {"integer", "number"}:
        kinds = {"number"}
    if kinds == {"number", "string"} and schema.get("format") == "decimal":
        kinds = {"string"}
    if len(kinds) != 1 or not kinds <= RULES.keys():
        raise WrongUse(
            f"JSON schema: {at} has type {given!r}; a column has one type, with null or without it."
            " Leave the type out to keep it as JSON text"
        )
    return kinds.pop(), may_be_null


_KIND_OF: Final = {str: "string", int: "integer"}


def _listed(schema: dict[str, Any], kind: str, may_be_null: bool, at: str) -> Typed:
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    wanted = {"string": str, "integer": int}.get(kind)
    choices = tuple(value for value in values if value is not None)
    if wanted is None or not choices or any(type(value) is not wanted for value in choices):
        raise WrongUse(f"JSON schema: {at} lists values that are not all text or all whole numbers")
    return Typed(Shape(TEXT if wanted is str else WHOLE), Literal[choices], may_be_null or None in values)


def _scalar(schema: dict[str, Any], kind: str, meta: dict[str, Any], at: str) -> Typed:
    """May add rules to `meta`: those that keep a number within its column."""
    format_ = schema.get("format")
    match kind, format_:
        case "string" | "number", "decimal":
            precision, scale = schema.get("precision", DECIMAL_DIGITS_MAX), schema.get("scale", DECIMAL_SCALE)
            if not (type(precision) is type(scale) is int and 0 <= scale <= precision <= DECIMAL_DIGITS_MAX):
                raise WrongUse(
                    f"JSON schema: {at} is a decimal with precision {precision!r} and scale {scale!r};"
                    f" precision goes to {DECIMAL_DIGITS_MAX} and scale to precision"
                )
            return Typed(Shape(pa.decimal128(precision, scale)), decimal.Decimal)
        case "string", "date-time":
            meta["tz"] = True
            return Typed(Shape(INSTANT), datetime.datetime)
        case "string", "date":
            return Typed(Shape(pa.date32()), datetime.date)
        case "string", _ if schema.get("contentEncoding") == "base64":
            return Typed(Shape(BYTES), bytes)
        case "string", _:
            if "contentEncoding" in schema:
                raise WrongUse(f"JSON schema: {at} has a contentEncoding other than base64")
            return Typed(Shape(TEXT), str)
        case "integer", _:
            _bound(meta, _INT32 if format_ == "int32" else _INT64)
            return Typed(Shape(WHOLE), int)
        case "number", _:
            return Typed(Shape(REAL), float)
    return Typed(Shape(pa.bool_()), bool)


def _bound(meta: dict[str, Any], bounds: dict[str, int]) -> None:
    """The narrower of what the schema says and what the column takes."""
    for ours, strict, narrower in (("ge", "gt", max), ("le", "lt", min)):
        if strict in meta:
            step = 1 if strict == "gt" else -1
            meta[ours] = narrower(meta.pop(strict) + step, meta.get(ours, bounds[ours]))
        meta[ours] = int(narrower(meta.get(ours, bounds[ours]), bounds[ours]))


def _any_json() -> Typed:
    def adapt(raw: object) -> object:
        assert isinstance(raw, msgspec.Raw)
        text = bytes(raw)
        return None if text == b"null" else text

    return Typed(Shape(TEXT, adapt), msgspec.Raw, may_be_null=True)


def _nullable(made: Typed) -> Any:
    return _or_null(made) if made.may_be_null else made.check


def _or_null(made: Typed) -> Any:
    # What is kept as text takes null as it takes anything, and msgspec has no union with it.
    return made.check if made.check is msgspec.Raw else Union[made.check, None]  # noqa: UP007  # a type made at run time
