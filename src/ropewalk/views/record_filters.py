"""Which records somebody wants to see: by text, by an expression, by what their values hold.

What a reader could get wrong
    All filters of a search must hold. A text or an expression may stand in the key, the value or a header: they are compared as bytes, so
    that nothing has to be decoded for it.
"""

from collections.abc import Callable, Sequence
from typing import Final

from ropewalk.base.patterns import compile_search
from ropewalk.records.record import Record
from ropewalk.views.decoding import Decode, Undecoded
from ropewalk.views.json_paths import Comparison

Filter = Callable[[Record], bool]

TEXT_CHARACTERS_MAX: Final = 4_096


def containing(text: str) -> Filter:
    """Raises `ValueError` for a text that is longer than anybody types."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise ValueError(f"a text of {len(text)} characters is longer than {TEXT_CHARACTERS_MAX}")
    wanted = text.encode()
    return _anywhere(lambda data: wanted in data)


def matching(expression: str) -> Filter:
    """RE2's syntax, anywhere in it; raises `ValueError`."""
    return _anywhere(compile_search(expression))


def comparing(comparison: Comparison, decode: Decode) -> Filter:
    """Of the value. One that cannot be decoded does not fit."""

    def holds(record: Record) -> bool:
        if record.value is None:
            return False
        try:
            return comparison.fits(decode(record.value))
        except (Undecoded, RecursionError):
            return False

    return holds


def all_of(filters: Sequence[Filter]) -> Filter:
    return lambda record: all(each(record) for each in filters)


def _anywhere(holds: Callable[[bytes], bool]) -> Filter:
    def holds_somewhere(record: Record) -> bool:
        if (record.value is not None and holds(record.value)) or (
            record.key is not None and holds(record.key)
        ):
            return True
        return any(
            holds(name.encode()) or (value is not None and holds(value)) for name, value in record.headers
        )

    return holds_somewhere
