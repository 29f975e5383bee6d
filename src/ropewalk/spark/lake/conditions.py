"""A condition on rows, in the manner of SQL's WHERE → an Arrow expression, for tasks that see no Spark.

    value.amount >= 100 AND topic IN ('orders', 'returns') AND NOT (key IS NULL OR value.note LIKE 'test%')

What a reader could get wrong
    A row whose condition is neither true nor false, because something in it is null, is left out, as in SQL.
    Words and names are told apart by case as everywhere here: words of the language in any case, names as the columns are called. A name with odd
    characters stands between backticks, each part of a path by itself.
    Text is held against columns of bytes as UTF-8, and against timestamps and dates as ISO 8601 writes them, in UTC unless it says otherwise.
    None of the libraries here parses such text: pyarrow has no parser, delta-rs and DuckDB keep theirs to their own tables, Spark's is in Java.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ropewalk.spark.pipelines.nearest import nearest
from ropewalk.spark.refusals import WrongUse

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<sign><=|>=|<>|!=|==|=|<|>|\(|\)|,|-)"
    r"|(?P<name>(?:`[^`]+`|[^\W\d]\w*)(?:\.(?:`[^`]+`|\w+))*))"
)
_WORDS: Final = frozenset({"and", "or", "not", "is", "null", "in", "like", "between", "true", "false"})
_COMPARISONS: Final = {
    "=": pc.equal, "==": pc.equal, "!=": pc.not_equal, "<>": pc.not_equal,
    "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_MIRRORED: Final = {
    pc.less: pc.greater, pc.less_equal: pc.greater_equal, pc.greater: pc.less, pc.greater_equal: pc.less_equal
}  # fmt: skip
"""The same with both sides changed: Arrow wants the column first."""
DEPTH_MAX: Final = 50
"""Of parentheses and NOT inside each other: more than anybody writes, and far less than Python's stack."""
TEXT_MAX: Final = 10_000
"""Characters of a condition."""


def parse_condition(text: str, schema: pa.Schema) -> pc.Expression:
    """Raises `WrongUse` for what is no condition on these columns."""
    if len(text) > TEXT_MAX:
        raise WrongUse(f"the condition has {len(text)} characters, and may have {TEXT_MAX}")
    return _Parser(text, schema).whole()


def find_column(path: str, schema: pa.Schema) -> tuple[tuple[str, ...], pa.DataType]:
    """The names along a path, and what it leads to. Raises `WrongUse` with the nearest there is."""
    parts = tuple(part.strip("`") for part in re.findall(r"`[^`]+`|[^.`]+", path))
    fields, above = list(schema), ""
    for depth, name in enumerate(parts):
        found = next((field for field in fields if field.name == name), None)
        if found is None:
            known = [f"{above}{field.name}" for field in fields]
            where = f"{above.rstrip('.')} has no field {name!r}" if above else f"there is no column {name!r}"
            raise WrongUse(f"{where}{nearest(f'{above}{name}', known)}")
        if depth + 1 == len(parts):
            return parts, found.type
        if not pa.types.is_struct(found.type):
            raise WrongUse(
                f"{above}{name} is {found.type} and has no fields; say format to read values as columns"
            )
        fields, above = list(found.type), f"{above}{name}."
    raise WrongUse(f"{path!r} names no column")


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Operand(NamedTuple):
    """A column, or a literal that becomes one of the type that it stands beside."""

    said: str
    type: pa.DataType | None
    expression: pc.Expression | None
    value: object = None


class _Parser:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self._text = text
        self._schema = schema
        self._tokens = list(self._cut())
        self._next = 0
        self._depth = 0

    def whole(self) -> pc.Expression:
        found = self._either()
        if self._next < len(self._tokens):
            raise self._refusal("AND, OR or the end")
        return found

    def _cut(self) -> Iterator[_Token]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise WrongUse(f"the condition cannot be read from {self._text[at:].strip()[:30]!r} on")
            kind = str(match.lastgroup)
            text, begins = match[kind], match.start(kind)
            if kind == "name" and text.lower() in _WORDS:
                kind, text = "word", text.lower()
            yield _Token(kind, text, begins)
            at = match.end()

    def _either(self) -> pc.Expression:
        found = self._both()
        while self._takes("or"):
            found = pc.or_kleene(found, self._both())
        return found

    def _both(self) -> pc.Expression:
        found = self._negated()
        while self._takes("and"):
            found = pc.and_kleene(found, self._negated())
        return found

    def _negated(self) -> pc.Expression:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise WrongUse(f"the condition is nested deeper than {DEPTH_MAX}")
        try:
            if self._takes("not"):
                return pc.invert(self._negated())
            if self._takes("("):
                found = self._either()
                self._expect(")")
                return found
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> pc.Expression:
        left = self._operand()
        if self._takes("is"):
            is_not = self._takes("not")
            self._expect("null")
            null = pc.is_null(_column(left, "IS NULL"))
            return pc.invert(null) if is_not else null
        is_not = self._takes("not")
        if self._takes("in"):
            found = self._membership(left)
        elif self._takes("like"):
            found = self._likeness(left)
        elif self._takes("between"):
            least = self._operand()
            self._expect("and")
            found = pc.and_kleene(
                _compared(pc.greater_equal, left, least), _compared(pc.less_equal, left, self._operand())
            )
        elif is_not:
            raise self._refusal("IN, LIKE or BETWEEN")
        else:
            token = self._peek()
            if token is None or token.text not in _COMPARISONS:
                if left.type is not None and pa.types.is_boolean(left.type):
                    return _column(left, "alone")
                raise self._refusal("=, <, >, IS, IN, LIKE or BETWEEN")
            self._next += 1
            return _compared(_COMPARISONS[token.text], left, self._operand())
        return pc.invert(found) if is_not else found

    def _membership(self, left: _Operand) -> pc.Expression:
        column = _column(left, "IN")
        assert left.type is not None
        self._expect("(")
        values = [_literal(self._operand(), left.type, left.said)]
        while self._takes(","):
            values.append(_literal(self._operand(), left.type, left.said))
        self._expect(")")
        known = [pc.equal(column, value) for value in values]
        found = known[0]
        for each in known[1:]:
            found = pc.or_kleene(found, each)
        return found

    def _likeness(self, left: _Operand) -> pc.Expression:
        column, pattern = _column(left, "LIKE"), self._operand()
        if not isinstance(pattern.value, str) or left.type not in (pa.string(), pa.binary()):
            raise WrongUse(f"LIKE takes a column of text or bytes and a pattern, as in {left.said} LIKE 'a%'")
        return pc.match_like(column, pattern.value)

    def _operand(self) -> _Operand:
        token = self._peek()
        if token is None:
            raise self._refusal("a column or a value")
        self._next += 1
        match token.kind, token.text:
            case "text", text:
                return _Operand(text, None, None, text[1:-1].replace("''", "'"))
            case "number", text:
                return _Operand(text, None, None, Decimal(text))
            case "sign", "-":
                after = self._peek()
                if after is None or after.kind != "number":
                    raise self._refusal("a number")
                self._next += 1
                return _Operand(f"-{after.text}", None, None, -Decimal(after.text))
            case "word", "true" | "false" as word:
                return _Operand(word, None, None, word == "true")
            case "name", path:
                names, type_ = find_column(path, self._schema)
                return _Operand(path, type_, pc.field(*names))
        self._next -= 1
        raise self._refusal("a column or a value")

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _takes(self, text: str) -> bool:
        token = self._peek()
        taken = token is not None and token.kind in ("word", "sign") and token.text == text
        self._next += taken
        return taken

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise self._refusal(text.upper())

    def _refusal(self, wanted: str) -> WrongUse:
        token = self._peek()
        found = "ends" if token is None else f"has {self._text[token.at :].strip()[:30]!r}"
        return WrongUse(f"the condition {found} where {wanted} must be")


def _column(operand: _Operand, word: str) -> pc.Expression:
    if operand.expression is None:
        raise WrongUse(f"{operand.said} is no column, and {word} is asked of one")
    return operand.expression


def _compared(compare: object, left: _Operand, right: _Operand) -> pc.Expression:
    assert callable(compare)
    if left.type is not None and right.type is not None:
        if left.type != right.type and not (_is_number(left.type) and _is_number(right.type)):
            raise WrongUse(
                f"{left.said} is {left.type} and {right.said} is {right.type}: they cannot be compared"
            )
        return compare(left.expression, right.expression)
    if left.type is not None:
        return compare(left.expression, _literal(right, left.type, left.said))
    if right.type is not None:
        return _MIRRORED.get(compare, compare)(right.expression, _literal(left, right.type, right.said))
    raise WrongUse(f"{left.said} and {right.said} are both no column: there is nothing to compare")


def _literal(operand: _Operand, type_: pa.DataType, beside: str) -> pa.Scalar:
    value = operand.value
    if operand.type is not None:
        raise WrongUse(f"{operand.said} is a column, and a value must stand there")
    try:
        match value:
            case bool() if pa.types.is_boolean(type_):
                return pa.scalar(value)
            case Decimal() if pa.types.is_decimal(type_):
                return pa.scalar(value)
            case Decimal() if _is_number(type_):
                is_whole = value == value.to_integral_value() and abs(value) < 1 << 63
                return pa.scalar(int(value)) if is_whole else pa.scalar(float(value))
            case str() if pa.types.is_string(type_):
                return pa.scalar(value)
            case str() if pa.types.is_binary(type_):
                return pa.scalar(value.encode())
            case str() if pa.types.is_timestamp(type_):
                instant = datetime.fromisoformat(value)
                aware = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
                return pa.scalar(aware if type_.tz else aware.replace(tzinfo=None), type_)
            case str() if pa.types.is_date(type_):
                return pa.scalar(date.fromisoformat(value), type_)
    except (ValueError, pa.ArrowInvalid):
        raise WrongUse(f"{operand.said} is no {type_}, which {beside} is") from None
    raise WrongUse(f"{beside} is {type_} and cannot be compared with {operand.said}")


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
