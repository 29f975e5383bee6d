"""What writing a decoder and writing an encoder have in common."""

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ropewalk.wire.schema import Field, fields_of
from ropewalk.wire.types import Message


class CodeWriter:
    """Lines of Python, the names in them, and the pending run.

    The run is the list of adjacent values of known width that no code has been written for yet: (code of the
    `struct` module, name or expression). Whatever is written next must flush it first, or append to it.
    """

    direction: str
    """The name of the function that is written."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self._version = version
        self._flexible = flexible
        self._lines: list[str] = []
        self._depth = 0
        self._name_count = 0
        self._run: list[tuple[str, str]] = []
        self._scope: dict[str, object] = {}

    def compile(self, message: type[Message]) -> Any:
        source = self.source(message)
        filename = f"<ropewalk.wire {self.direction} {message.__qualname__} v{self._version}>"
        # Tracebacks through a codec show its lines.
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compile(source, filename, "exec"), self._scope)
        return self._scope[self.direction]

    def source(self, message: type[Message]) -> str:
        self._write_function(message)
        return "\n".join(self._lines) + "\n"

    def _write_function(self, message: type[Message]) -> None:
        raise NotImplementedError

    def _line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def _block(self, head: str) -> Iterator[None]:
        """What is written inside is indented below `head`; nothing at all becomes `pass`."""
        self._line(head)
        line_count = len(self._lines)
        self._depth += 1
        yield
        if len(self._lines) == line_count:
            self._line("pass")
        self._depth -= 1

    def _name(self, stem: str) -> str:
        self._name_count += 1
        return f"{stem}_{self._name_count}"

    def _constant(self, stem: str, value: object) -> str:
        """A name by which the code finds `value`."""
        name = self._name(stem)
        self._scope[name] = value
        return name

    def _plain_fields(self, message: type[Message]) -> list[Field]:
        return [field for field in fields_of(message) if field.exists(self._version) and field.tag is None]

    def _tagged_fields(self, message: type[Message]) -> list[Field]:
        """In the order of their tags, which is their order on the wire."""
        found = [
            field for field in fields_of(message) if field.exists(self._version) and field.tag is not None
        ]
        assert self._flexible or not found, f"{message.__qualname__} has tags in version {self._version}"
        return sorted(found, key=lambda field: field.tag or 0)


def plain_name(name: str) -> str:
    """The field's name, from the numbered name that the code gave it."""
    return name.rpartition("_")[0]
