"""What a setting is: a name, a type, a default, the values it takes, and a sentence for the person who sets it.

Settings are kept and compared as text, exactly as clients send them; `parse` turns text into a value and refuses
with a message that names setting, value and bound. Kafka's types and limits are taken over, because its tools
send and print them.
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting

LONG_MAX: Final = 2**63 - 1

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class Kind(IntEnum):
    """The type of a setting, by the code DescribeConfigs gives it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Change(Enum):
    """Who may change a setting while the node runs."""

    READ_ONLY = "read-only"
    """Taken from the node's configuration at start."""
    PER_BROKER = "per-broker"
    """Each broker may have its own value."""
    CLUSTER_WIDE = "cluster-wide"
    """One broker or all of them."""


class Synonym(Struct, frozen=True):
    """A broker setting that gives a topic setting its default, times `factor` where the units differ."""

    name: str
    factor: int = 1

    def convert(self, text: str) -> str:
        """Negative numbers mean "unlimited" or "as the other setting" in every unit."""
        return text if self.factor == 1 or int(text) < 0 else str(int(text) * self.factor)


class Setting(Struct, frozen=True):
    """One entry of a catalogue. Values are refused by `parse`, never by the code that uses them."""

    name: str
    kind: Kind
    default: str | None
    documentation: str
    minimum: int | None = None
    maximum: int | None = None
    also: int | None = None
    """One number outside minimum and maximum that is allowed all the same."""
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    """Of text: what the whole of it must match; of a list, each item."""
    change: Change = Change.CLUSTER_WIDE
    synonyms: tuple[Synonym, ...] = ()
    """For a topic setting: the broker settings behind it, first one wins."""
    agreed: bool = False
    """More than one node acts on it, and what was acknowledged rests on all meaning the same: the cluster keeps one value (ADR 0013)."""
    without_effect: bool = False
    """Known and checked for the sake of tools that set it, but nothing in this version acts on it."""
    refused: Mapping[str, str] = {}
    """Values that Kafka allows and this version cannot honour, with the reason."""

    @property
    def description(self) -> str:
        """The documentation as shown to clients; it admits to having no effect."""
        return f"{self.documentation} {_WITHOUT_EFFECT}" if self.without_effect else self.documentation

    def parse(self, text: str | None) -> Value:
        """The value of `text`, or `InvalidSetting`. None stands for a setting that has no value at all."""
        if text is None:
            if self.default is not None:
                raise InvalidSetting(f"{self.name} needs a value")
            return None
        text = text.strip()
        if text in self.refused:
            raise InvalidSetting(f"{self.name}={text} is refused: {self.refused[text]}")
        value = _PARSERS[self.kind](self.name, text)
        self._check_bounds(value)
        return value

    def _check_bounds(self, value: Value) -> None:
        if isinstance(value, tuple):
            for item in value:
                self._check_choice(item)
                self._check_pattern(item)
            if len(set(value)) != len(value):
                raise InvalidSetting(f"{self.name} names something twice: {','.join(value)}")
        elif isinstance(value, str):
            self._check_choice(value)
            self._check_pattern(value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and value != self.also:
            if self.minimum is not None and value < self.minimum:
                raise InvalidSetting(f"{_invalid(self.name, value)}: must be at least {self.minimum}")
            if self.maximum is not None and value > self.maximum:
                raise InvalidSetting(f"{_invalid(self.name, value)}: must be at most {self.maximum}")

    def _check_choice(self, value: str) -> None:
        if self.choices and value not in self.choices:
            raise InvalidSetting(f"{_invalid(self.name, value)}: must be one of {', '.join(self.choices)}")

    def _check_pattern(self, value: str) -> None:
        if self.pattern is not None and re.fullmatch(self.pattern, value) is None:
            raise InvalidSetting(f"{_invalid(self.name, value)}: must match {self.pattern}")


_WITHOUT_EFFECT: Final = "Accepted so that existing tools work; this version of Ropewalk does not act on it."


def _invalid(name: str, value: object) -> str:
    """Kafka's words, which scripts look for."""
    return f"Invalid value {value} for configuration {name}"


_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")


def _parse_boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidSetting(f"{_invalid(name, text)}: must be true or false")
    return text.lower() == "true"


def _parse_integer(bits: int) -> Callable[[str, str], int]:
    bound = 1 << (bits - 1)

    def parse(name: str, text: str) -> int:
        if _WHOLE_NUMBER.fullmatch(text) is None:
            raise InvalidSetting(f"{_invalid(name, text)}: must be a whole number")
        if not -bound <= int(text) < bound:
            raise InvalidSetting(f"{_invalid(name, text)}: must fit in {bits} bits")
        return int(text)

    return parse


def _parse_double(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InvalidSetting(f"{_invalid(name, text)}: must be a number") from None
    if value != value:
        raise InvalidSetting(f"{_invalid(name, text)}: must be a number")
    return value


def _parse_list(name: str, text: str) -> tuple[str, ...]:
    items = tuple(item.strip() for item in text.split(",")) if text else ()
    if not all(items):
        raise InvalidSetting(f"{name} has an empty item: {text!r}")
    return items


def _parse_text(_name: str, text: str) -> str:
    return text


_PARSERS: Final[Mapping[Kind, Callable[[str, str], Value]]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.STRING: _parse_text,
    Kind.INT: _parse_integer(32),
    Kind.SHORT: _parse_integer(16),
    Kind.LONG: _parse_integer(64),
    Kind.DOUBLE: _parse_double,
    Kind.LIST: _parse_list,
    Kind.CLASS: _parse_text,
    Kind.PASSWORD: _parse_text,
}
