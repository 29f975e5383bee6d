"""One console for many processes: every line says whose it is.

A line of text gets a name before it. A line that is a JSON object, as nodes write where nobody looks on, gets a field,
and stays one that programs can read.
"""

from typing import Final, Protocol

LINE_BYTES_MAX: Final = 1 << 20
"""A longer line is shown in pieces: a process that never ends its line must not fill our memory."""


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> object: ...


class Console:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def show(self, name: str, line: bytes) -> None:
        if line.startswith(b"{") and line.endswith(b"}") and len(line) > 2:
            shown = b'{"from":"%s",%s\n' % (name.encode(), line[1:])
        else:
            shown = b"%s | %s\n" % (name.encode(), line)
        self._write(shown)

    def say(self, text: str) -> None:
        """The supervisor's own word."""
        self._write(f"ropewalk: {text}\n".encode())

    def _write(self, data: bytes) -> None:
        self._sink.write(data)
        self._sink.flush()


class Lines:
    """Cuts what a pipe delivers into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """At the end of the stream, with no data, the last line need not have been ended."""
        if not data:
            rest, self._rest = self._rest, b""
            return [rest] if rest else []
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            lines.append(self._rest)
            self._rest = b""
        return lines
