"""How requests and answers of an action are declared: one class each, from which both protocols take their names.

A field's name in AWS JSON is its Python name in Pascal case, unless it says another. In the Query protocol a list is flattened to
`Element.1`, `Element.2`, …, and a map to `Element.1.Name`, `Element.1.Value`, …; `Flat` says under which names.

What a reader could get wrong
    A field that a client must give has an empty default, and its name is in `REQUIRED`: what is missing is refused with SQS's own words.
    Empty counts as missing.
"""

from typing import ClassVar, Final

from msgspec import Struct

from ropewalk.sqs.errors import missing


class Flat(Struct, frozen=True):
    """What a list or map is called in the Query protocol."""

    element: str
    key: str = "Name"
    value: str = "Value"


NAME_AND_VALUE: Final = Flat("Attribute")
KEY_AND_VALUE: Final = Flat("Tag", "Key", "Value")


class Input(Struct, frozen=True, kw_only=True, rename="pascal"):
    """The root of requests."""

    REQUIRED: ClassVar[tuple[str, ...]] = ()
    """Names of fields, in the order in which they are asked for."""


class Output(Struct, frozen=True, kw_only=True, rename="pascal", omit_defaults=True):
    """The root of answers. What is as its default is left out."""


class Empty(Output, frozen=True, kw_only=True):
    """Of an action that has nothing to say."""


EMPTY: Final = Empty()


def require(request: Input) -> None:
    """Raises `SqsRefusal` where something is missing."""
    for name in request.REQUIRED:
        if not getattr(request, name):
            raise missing(_wire_name(type(request), name))


def _wire_name(shape: type[Struct], field: str) -> str:
    return shape.__struct_encode_fields__[shape.__struct_fields__.index(field)]
