"""Paths into JSON, and comparisons of what they lead to: `user.address[0].city = "Bergen"`. No language, so nothing of a stranger runs.

    a.b           the field b of the field a; a leading `$.` may stand before it
    a[0], a[-1]   an element of a list, from its end with a minus
    a[*]          every element, or every field: one that fits is enough
    ["a.b"]       a field whose name has dots, brackets or spaces
    a.b = 5       compared: = != < <= > >=, and ~ for text that contains it
    a.b           alone: it is there, whatever it holds

What a reader could get wrong
    What is compared with is JSON where it can be read as such, else text: `id = 5` is the number, `id = "5"` the text. Nothing is converted:
    a number is never equal to a text, neither is it less, and true is no 1.
    `!=` holds where something is there and is not equal; a path that leads nowhere fits nothing.
"""

import re
from collections.abc import Callable, Iterator
from operator import ge, gt, le, lt
from typing import Any, Final

import msgspec
from msgspec import Struct

STEPS_MAX: Final = 64
_EVERY: Final = "*"
_STEP: Final = re.compile(
    r"""\.?(?P<name>[^\s.\[\]=!<>~"']+)|\[(?P<index>-?\d{1,9}|\*)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]"""
)
_SIGN: Final = re.compile(r"\s*(<=|>=|!=|==|=|<|>|~)\s*")

Step = str | int | None
"""The name of a field, the place of an element, or None for every one."""


class Comparison(Struct, frozen=True):
    steps: tuple[Step, ...]
    sign: str | None
    """None: it is enough that something is there."""
    operand: object

    def fits(self, document: object) -> bool:
        """Whether something that the path leads to compares as said."""
        return any(self._compares(value) for value in _walk(document, self.steps))

    def _compares(self, value: object) -> bool:
        match self.sign:
            case None:
                return True
            case "=":
                return _is_equal(value, self.operand)
            case "!=":
                return not _is_equal(value, self.operand)
            case "~":
                return isinstance(value, str) and str(self.operand) in value
            case sign:
                return _is_ordered(value, self.operand) and _ORDERS[sign](value, self.operand)


def parse_comparison(text: str) -> Comparison:
    """Raises `ValueError`, which says where it cannot be read."""
    steps: list[Step] = []
    at = 2 if text.startswith("$.") else 1 if text.startswith("$") else 0
    while (found := _STEP.match(text, at)) is not None:
        steps.append(_step(found))
        at = found.end()
        if len(steps) > STEPS_MAX:
            raise ValueError(f"a path of more than {STEPS_MAX} steps")
    if not steps:
        raise ValueError(f"{text!r} does not begin with a path, as user.id or items[0].price")
    if not text[at:].strip():
        return Comparison(tuple(steps), None, None)
    sign = _SIGN.match(text, at)
    if sign is None:
        raise ValueError(
            f"{text!r} cannot be read from {text[at:]!r} on; a comparison has one of = != < <= > >= ~"
        )
    operand = text[sign.end() :].strip()
    said = "=" if sign[1] == "==" else sign[1]
    return Comparison(tuple(steps), said, operand if said == "~" else _operand(operand))


def _step(found: re.Match[str]) -> Step:
    if found["quoted"] is not None:
        name: str = msgspec.json.decode(found["quoted"], type=str)
        return name
    if found["index"] is not None:
        return None if found["index"] == _EVERY else int(found["index"])
    return found["name"]


def _operand(text: str) -> object:
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text
    return value


def _walk(value: object, steps: tuple[Step, ...]) -> Iterator[object]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    match value, step:
        case dict(), None:
            for each in value.values():
                yield from _walk(each, rest)
        case list(), None:
            for each in value:
                yield from _walk(each, rest)
        case dict(), str():
            if step in value:
                yield from _walk(value[step], rest)
        case list(), int():
            if -len(value) <= step < len(value):
                yield from _walk(value[step], rest)
        case _:
            return


def _is_equal(value: object, operand: object) -> bool:
    if isinstance(value, bool) or isinstance(operand, bool):
        return value is operand
    return value == operand


def _is_ordered(value: object, operand: object) -> bool:
    if isinstance(value, bool) or isinstance(operand, bool):
        return False
    numbers = isinstance(value, int | float) and isinstance(operand, int | float)
    return numbers or (isinstance(value, str) and isinstance(operand, str))


_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
