"""Results on stdout: a table for people, JSON for scripts.

What a reader could get wrong
    Names, keys and values come from anybody who may write to the cluster. A terminal obeys control characters, so there they are shown and
    not sent; a pipe gets them as they are.
"""

import os
import re
import sys
from collections.abc import Sequence
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_LINES: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def print_json(value: object) -> None:
    """One document, indented; anything that msgspec can encode."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns in capitals. In a pipe it is plain text, aligned, one row per line, whatever the width."""
    cells = [[_text(cell) for cell in row] for row in rows]
    if is_terminal():
        _print_rich(columns, cells)
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in (columns, *cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def is_terminal() -> bool:
    """Whether stdout is a terminal that likes colour (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def note(text: str) -> None:
    """A word to the person at the terminal; scripts do not see it."""
    if sys.stderr.isatty():
        print(visible(text), file=sys.stderr)


def warn(text: str) -> None:
    """Something to know before going on; scripts find it on stderr."""
    print(f"ropewalk: {visible(text)}", file=sys.stderr)


def visible(text: str) -> str:
    """Control characters as `\\x1b` and its like."""
    return _CONTROL.sub(_written, text)


def visible_lines(data: bytes) -> bytes:
    """As `visible`, for what may have lines and tabs of its own; bytes that are no text are shown likewise."""
    return _CONTROL_IN_LINES.sub(_written, data.decode(errors="backslashreplace")).encode()


def _written(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        # Text, because a topic's settings may contain what rich would take for markup.
        table.add_row(*(Text(visible(cell)) for cell in row))
    Console().print(table)


def _text(cell: object) -> str:
    match cell:
        case None:
            return "-"
        case bool():
            return "yes" if cell else "no"
        case list() | tuple():
            return ",".join(map(str, cell))
        case _:
            return str(cell)
