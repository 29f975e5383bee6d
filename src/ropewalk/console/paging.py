"""A long list, a page at a time."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from ropewalk.base.limits import CONSOLE_ROWS_MAX

T = TypeVar("T")


class Paged(Struct, Generic[T], frozen=True):
    rows: Sequence[T]
    number: int
    """Of the page, from 1."""
    count: int
    """Of pages; at least one."""
    total: int
    """Of rows, over all pages."""


def paged(rows: Sequence[T], number: str) -> Paged[T]:
    """The page of that number, as it stands in an address; the first or the last where there is no such page."""
    count = max(1, -(-len(rows) // CONSOLE_ROWS_MAX))
    wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 1
    chosen = min(max(1, wanted), count)
    return Paged(rows[(chosen - 1) * CONSOLE_ROWS_MAX : chosen * CONSOLE_ROWS_MAX], chosen, count, len(rows))
