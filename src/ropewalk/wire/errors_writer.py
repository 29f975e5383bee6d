"""Writes the source of `errors_of(message)`: all error codes other than 0 in an answer, however deep they stand.

It is the same for all versions: a field that a version does not carry has its default.
"""

from ropewalk.wire.code_writer import CodeWriter
from ropewalk.wire.schema import Array, Structure, fields_of
from ropewalk.wire.types import Message


class ErrorsWriter(CodeWriter):
    direction = "errors_of"

    def _write_function(self, message: type[Message]) -> None:
        with self._block("def errors_of(message):"):
            self._line("found = []")
            self._structure(message, "message")
            self._line("return found")

    def _structure(self, message: type[Message], source: str) -> None:
        for field in fields_of(message):
            where = f"{source}.{field.name}"
            if field.name.endswith("error_code"):
                self._line(f"if {where}: found.append({where})")
            elif isinstance(field.kind, Array) and isinstance(field.kind.element, Structure):
                element = field.kind.element.message
                if _has_errors(element):
                    name = self._name(field.name)
                    with self._block(f"for {name} in {where} or ():"):
                        self._structure(element, name)


def _has_errors(message: type[Message]) -> bool:
    return any(
        field.name.endswith("error_code")
        or (
            isinstance(field.kind, Array)
            and isinstance(field.kind.element, Structure)
            and _has_errors(field.kind.element.message)
        )
        for field in fields_of(message)
    )
