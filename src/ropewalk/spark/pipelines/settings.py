"""The settings of a kind of pipeline: read from tables and words, and described from the class that declares them.

What a reader could get wrong
    Words on a command line are text, and become what the field is: `--retain-days 7` a number, `--compact` alone a truth and
    `--no-compact` its opposite; a list takes the flag as often as needed, and a table takes `--flag KEY=VALUE`.
    What a field is for stands as text below it in the class, and is read from the source: there is one place for it.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Final

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.inspect import (
    BoolType,
    DictType,
    IntType,
    ListType,
    LiteralType,
    StrType,
    StructType,
    Type,
    UnionType,
    type_info,
)
from msgspec.structs import fields

from ropewalk.spark.pipelines.nearest import nearest
from ropewalk.spark.refusals import WrongUse

UPKEEP_BOUNDS: Final = {
    "keep_snapshots_hours": (0, 876_000),
    "keep_snapshots": (10, 1_000_000),
    "keep_rows_days": (0, 365_000),
    "upkeep_batches": (0, 1_000_000_000),
}
"""Of what every kind with a table has. More than a hundred years of states, or a thousand of rows, no calendar can be asked for."""
_IN_WORDS: Final[Mapping[type[Type], str]] = {
    IntType: "a whole number",
    BoolType: "true or false",
    StrType: "text",
    ListType: "a list",
    DictType: "a table of names and texts",
}


class Described(Struct, frozen=True):
    """One setting, for people."""

    name: str
    default: object
    """As JSON has it; None where there is none."""
    required: bool
    meaning: str


def read_settings(settings: type[Struct], given: Mapping[str, object], kind: str) -> Struct:
    names = [each.encode_name for each in fields(settings)]
    for name in given:
        if name not in names:
            raise WrongUse(f"{kind} has no setting {name!r}{nearest(name, names)}")
    missing = [
        each.encode_name for each in fields(settings) if each.required and each.encode_name not in given
    ]
    if missing:
        flags = ", ".join(f"--{_dashed(name)}" for name in missing)
        raise WrongUse(f"{kind} must be told {', '.join(missing)}: say {flags}, or set it in the file")
    kinds = _kinds(settings)
    for name, value in given.items():
        allowed = kinds[name]
        if isinstance(allowed, LiteralType) and value not in allowed.values:
            choices = [str(each) for each in allowed.values]
            raise WrongUse(
                f"{name} is {value!r}, must be {' or '.join(choices)}{nearest(str(value), choices)}"
            )
    try:
        # Not strict: what comes from a command line is text.
        return msgspec.convert(dict(given), settings, strict=False)
    except msgspec.ValidationError as error:
        raise WrongUse(_said_of(str(error), given, kinds, kind)) from None


def bound(settings: Struct, bounds: Mapping[str, tuple[int, int]]) -> None:
    """Raises `ValueError` for the first that is outside of its bounds, which are allowed themselves."""
    for name, (least, most) in bounds.items():
        value = getattr(settings, name)
        if value < least:
            raise ValueError(f"{name} is {value}, must be at least {least}")
        if value > most:
            raise ValueError(f"{name} is {value}, must be at most {most}")


def _said_of(error: str, given: Mapping[str, object], kinds: Mapping[str, Type], kind: str) -> str:
    """In words for people, where msgspec tells of types; what settings say of themselves stays as it is."""
    found = re.fullmatch(r"Expected .* - at `\$\.(\w+)`", error)
    wanted = None if found is None else _IN_WORDS.get(type(kinds[found[1]]))
    if found is None or wanted is None:
        return f"settings of {kind}: {error.replace('`$.', '`')}"
    return f"{found[1]} is {given[found[1]]!r}, must be {wanted}"


def words_to_settings(settings: type[Struct], words: Iterable[str]) -> dict[str, object]:
    """`--name VALUE`, `--name=VALUE`, `--name` and `--no-name`, in any order."""
    kinds = _kinds(settings)
    flags = [f"--{_dashed(name)}" for name in kinds]
    found: dict[str, object] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        negated = name.removeprefix("no_")
        if not flag.startswith("--"):
            raise WrongUse(f"{word!r} stands alone; settings are given as --name VALUE")
        if name not in kinds and isinstance(kinds.get(negated), BoolType) and not equals:
            found[negated] = False
        elif name not in kinds:
            raise WrongUse(f"there is no option {flag}{nearest(flag, flags)}")
        elif isinstance(kinds[name], BoolType) and not equals:
            found[name] = True
        else:
            if not equals:
                if not rest:
                    raise WrongUse(f"{flag} needs a value")
                value = rest.pop(0)
            _put(found, name, kinds[name], value, flag)
    return found


def describe_settings(settings: type[Struct]) -> list[Described]:
    meanings = _meanings(settings)
    described = []
    for each in fields(settings):
        default = each.default if each.default is not NODEFAULT else None
        if each.default_factory is not NODEFAULT:
            default = each.default_factory()
        described.append(
            Described(
                each.encode_name, msgspec.to_builtins(default), each.required, meanings.get(each.name, "")
            )
        )
    return described


def _put(found: dict[str, object], name: str, kind: Type, value: str, flag: str) -> None:
    match kind:
        case ListType():
            listed = found.setdefault(name, [])
            assert isinstance(listed, list)
            listed.append(value)
        case DictType():
            table = found.setdefault(name, {})
            assert isinstance(table, dict)
            key, equals, text = value.partition("=")
            if not equals or not key:
                raise WrongUse(f"{flag} {value!r} is not KEY=VALUE")
            table[key] = text
        case _:
            found[name] = value


def _kinds(settings: type[Struct]) -> dict[str, Type]:
    described = type_info(settings)
    assert isinstance(described, StructType)
    return {each.encode_name: _principal(each.type) for each in described.fields}


def _principal(kind: Type) -> Type:
    """What a field holds when it holds something: `str | None` is text."""
    if isinstance(kind, UnionType):
        return next(each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType))
    return kind


def _meanings(settings: type[Struct]) -> dict[str, str]:
    """The text below each field, of the class and those it is made from."""
    found: dict[str, str] = {}
    for each in reversed(settings.__mro__):
        if not issubclass(each, Struct) or each is Struct:
            continue
        (declared,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(declared, ast.ClassDef)
        for statement, following in pairwise(declared.body):
            match statement, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


def _dashed(name: str) -> str:
    return name.replace("_", "-")
