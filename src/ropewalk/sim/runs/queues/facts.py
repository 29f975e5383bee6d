"""What leaders decided about messages, in real time: they count when the record that they are written with is committed."""

from typing import TypeAlias

from msgspec import Struct


class Given(Struct, frozen=True):
    offsets: tuple[int, ...]
    attempt: int
    at_ms: int
    until_ms: int


class Extended(Struct, frozen=True):
    """Or shortened."""

    offset: int
    until_ms: int


class Released(Struct, frozen=True):
    offset: int


class Deleted(Struct, frozen=True):
    offset: int


class Purged(Struct, frozen=True):
    end_offset: int


class Rewound(Struct, frozen=True):
    offset: int


class Moved(Struct, frozen=True):
    offsets: tuple[int, ...]
    moved_count: int
    """The first so many; the others stay."""


Fact: TypeAlias = Given | Extended | Released | Deleted | Purged | Rewound | Moved
