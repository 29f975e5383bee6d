"""Keywords of JSON Schema: which are checked by what of msgspec's, which are notes, and which are neither and so refused."""

import math
from collections.abc import Callable
from typing import Any, Final

from ropewalk.spark.refusals import WrongUse

_NUMBER_RULES: Final = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
_LENGTH_RULES: Final = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
)
RULES: Final[dict[str, dict[str, str]]] = {
    "string": {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"},
    "integer": _NUMBER_RULES,
    "number": _NUMBER_RULES,
    "array": {"minItems": "min_length", "maxItems": "max_length"},
    "object": {"minProperties": "min_length", "maxProperties": "max_length"},
    "boolean": {},
}
_NOTES: Final = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "definitions",
        "id",
        "format",
        "contentMediaType",
    ]
)
OWN: Final = {
    "string": {"contentEncoding", "precision", "scale"},
    "number": {"precision", "scale"},
    "array": {"items"},
    "object": {"properties", "required", "additionalProperties"},
}


def refuse_malformed(schema: dict[str, Any], at: str) -> None:
    """What would be no schema by anybody's rules."""
    for keyword, value in schema.items():
        is_right = _FORMS.get(keyword)
        if is_right is not None and not is_right(value):
            raise WrongUse(f"JSON schema: {at} has {keyword!r} with {value!r}, which it cannot be")


def _are_names(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(each, str) for each in given)


def _is_number(given: object) -> bool:
    return type(given) in (int, float) and math.isfinite(given)  # type: ignore[arg-type]  # it is a number


def refuse_unchecked(schema: dict[str, Any], known: set[str], at: str) -> None:
    for keyword in schema:
        is_note = keyword in _NOTES or keyword.startswith(("$", "x-")) or "." in keyword
        if keyword not in known and not is_note:
            raise WrongUse(
                f"JSON schema: {at} has {keyword!r}, which is not checked here; take it out of the schema to go without"
            )


_FORMS: Final[dict[str, Callable[[object], bool]]] = {
    "type": lambda given: isinstance(given, str) or _are_names(given),
    "required": _are_names,
    "enum": lambda given: isinstance(given, list),
    "properties": lambda given: isinstance(given, dict),
    "pattern": lambda given: isinstance(given, str),
    **dict.fromkeys(_NUMBER_RULES, _is_number),
    **dict.fromkeys(_LENGTH_RULES, lambda given: type(given) is int),
}
