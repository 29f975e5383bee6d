"""What a message class says, as a structure that code can walk.

The annotations are read once per class. `compile` walks the result to write codecs; the tests walk it to invent
messages; the development script walks it to compare our classes with Kafka's own schemas.
"""

import types
from functools import cache
from struct import calcsize
from typing import Annotated, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields as struct_fields

from ropewalk.wire.types import VERSION_LAST, Fixed, Message, NullableSince, RecordSet, Tagged, Versions


class Text(Struct, frozen=True):
    """A string in UTF-8 behind its length."""


class Blob(Struct, frozen=True):
    """Bytes behind their length, copied when decoded."""


class Structure(Struct, frozen=True):
    """Another message, in place."""

    message: type[Message]


class Array(Struct, frozen=True):
    """Elements of one kind behind their count."""

    element: "Kind"


Kind: TypeAlias = Fixed | Text | Blob | RecordSet | Structure | Array

_NEVER_NULL: Final = VERSION_LAST + 1


class Field(Struct, frozen=True):
    """One field of a message. `default` is `NODEFAULT` where every version carries a value."""

    name: str
    kind: Kind
    versions: Versions
    nullable_since: int
    tag: int | None
    default: object

    def exists(self, version: int) -> bool:
        return self.versions.first <= version <= self.versions.last

    def nullable(self, version: int) -> bool:
        return version >= self.nullable_since


@cache
def fields_of(message: type[Message]) -> tuple[Field, ...]:
    """The fields in wire order."""
    hints = get_type_hints(message, include_extras=True)
    return tuple(
        _field(known.name, hints[known.name], _default(known.default, known.default_factory))
        for known in struct_fields(message)
    )


def size_min(kind: Kind, version: int, *, flexible: bool, nullable: bool = False) -> int:
    """The fewest bytes a value can take. It bounds how many elements an array of so many bytes can have."""
    match kind:
        case Fixed(code):
            return calcsize(">" + code)
        case Text():
            return 1 if flexible else 2
        case Blob() | RecordSet() | Array():
            return 1 if flexible else 4
        case Structure(message):
            if nullable:
                return 1
            plain = [field for field in fields_of(message) if field.exists(version) and field.tag is None]
            return int(flexible) + sum(
                size_min(field.kind, version, flexible=flexible, nullable=field.nullable(version))
                for field in plain
            )


def _default(value: object, factory: object) -> object:
    # msgspec keeps an empty tuple as it is, and turns only lists, dicts and sets into factories.
    assert factory is NODEFAULT, "a message has no mutable defaults"
    return value


def _field(name: str, hint: object, default: object) -> Field:
    annotated, marks = _split(hint)
    versions, nullable_since, tag, wire = Versions(), 0, None, None
    for mark in marks:
        match mark:
            case Versions():
                versions = mark
            case NullableSince(version):
                nullable_since = version
            case Tagged(number):
                tag = number
            case Fixed() | RecordSet():
                wire = mark
            case _:
                raise AssertionError(f"{name}: {mark!r} is not a mark of the wire")
    inner, can_be_null = _without_none(annotated)
    kind = wire if wire is not None else _kind(inner)
    return Field(name, kind, versions, nullable_since if can_be_null else _NEVER_NULL, tag, default)


def _kind(annotation: object) -> Kind:
    annotation, marks = _split(annotation)
    for mark in marks:
        if isinstance(mark, Fixed):
            return mark
    if annotation is bool:
        return Fixed("?")
    if annotation is str:
        return Text()
    if annotation is bytes:
        return Blob()
    if get_origin(annotation) is tuple:
        element, ellipsis = get_args(annotation)
        assert ellipsis is ..., f"{annotation!r} is not an array"
        return Array(_kind(element))
    assert isinstance(annotation, type), f"{annotation!r} has no wire type"
    assert issubclass(annotation, Message), f"{annotation!r} has no wire type"
    return Structure(annotation)


def _split(hint: object) -> tuple[object, tuple[object, ...]]:
    if get_origin(hint) is Annotated:
        annotated, *marks = get_args(hint)
        return annotated, tuple(marks)
    return hint, ()


def _without_none(annotation: object) -> tuple[object, bool]:
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation, False
    members = get_args(annotation)
    inner = [member for member in members if member is not type(None)]
    return inner[0], len(inner) < len(members)
