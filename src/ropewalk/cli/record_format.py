"""How a consumed record is printed: kcat's format letters, or one JSON object per line.

    %v %s  value         %V %S  its size, -1 for none
    %k     key           %K     its size, -1 for none
    %t     topic         %p     partition
    %o     offset        %T     timestamp, milliseconds since 1970
    %h     headers, name=value separated by commas
    %%     a percent sign; \\n \\t \\r \\\\ \\0 and \\xHH are characters

What a reader could get wrong
    Values are bytes and are written as they are; nothing is decoded or replaced. For a terminal, `shown` makes a record of which every control
    character is visible: it would obey them.
    In JSON, bytes that are not UTF-8 appear as `value_base64` instead of `value`, likewise the key and headers.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import structs

from ropewalk.base.ids import TopicPartition
from ropewalk.cli.output import visible, visible_lines
from ropewalk.records.record import Record
from ropewalk.views.decoding import Decode, Undecoded, as_text, json_indented

Printer = Callable[[TopicPartition, Record], bytes]


def _headers(record: Record) -> bytes:
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in record.headers)


def _size(field: bytes | None) -> bytes:
    return b"-1" if field is None else b"%d" % len(field)


_LETTERS: Final[dict[str, Printer]] = {
    "v": lambda _, record: record.value or b"",
    "s": lambda _, record: record.value or b"",
    "V": lambda _, record: _size(record.value),
    "S": lambda _, record: _size(record.value),
    "k": lambda _, record: record.key or b"",
    "K": lambda _, record: _size(record.key),
    "t": lambda partition, _: partition.topic.encode(),
    "p": lambda partition, _: b"%d" % partition.partition,
    "o": lambda _, record: b"%d" % record.offset,
    "T": lambda _, record: b"%d" % record.timestamp,
    "h": lambda _, record: _headers(record),
    "%": lambda _, __: b"%",
}
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\", "0": b"\0"}
_PIECE: Final = re.compile(
    r"%(?P<letter>.?)|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.?)|(?P<text>[^%\\]+)", re.S
)


def compile_format(text: str) -> Printer:
    """Raises `ValueError` that names the letter or escape that does not exist."""
    pieces: list[Printer] = []
    for match in _PIECE.finditer(text):
        letter, code, escape = match["letter"], match["hex"], match["escape"]
        if letter is not None:
            if letter not in _LETTERS:
                raise ValueError(
                    f"%{letter} is not a format letter; there are {', '.join(map('%{}'.format, _LETTERS))}"
                )
            pieces.append(_LETTERS[letter])
        elif code is not None:
            pieces.append(_constant(bytes.fromhex(code)))
        elif escape is not None:
            if escape not in _ESCAPES:
                raise ValueError(f"\\{escape} is not an escape; there are \\n, \\t, \\r, \\\\, \\0 and \\xHH")
            pieces.append(_constant(_ESCAPES[escape]))
        else:
            pieces.append(_constant(match["text"].encode()))

    def print_record(partition: TopicPartition, record: Record) -> bytes:
        return b"".join([piece(partition, record) for piece in pieces])

    return print_record


def shown(printer: Printer) -> Printer:
    """As `printer`, for a terminal."""

    def print_record(partition: TopicPartition, record: Record) -> bytes:
        visible_record = structs.replace(
            record,
            key=None if record.key is None else visible_lines(record.key),
            value=None if record.value is None else visible_lines(record.value),
            headers=tuple(
                (visible(name), None if value is None else visible_lines(value))
                for name, value in record.headers
            ),
        )
        return printer(partition, visible_record)

    return print_record


def decoded(printer: Printer, decode: Decode, *, indent: bool) -> Printer:
    """As `printer`, with values decoded; those that cannot be are left as they are."""

    def print_record(partition: TopicPartition, record: Record) -> bytes:
        if record.value is None:
            return printer(partition, record)
        try:
            text = as_text(decode(record.value), indent=indent)
        except Undecoded:
            return printer(partition, record)
        return printer(partition, structs.replace(record, value=text.encode(errors="replace")))

    return print_record


def indented(printer: Printer) -> Printer:
    """As `printer`, with values that are JSON in lines, for people."""

    def print_record(partition: TopicPartition, record: Record) -> bytes:
        lines = None if record.value is None else json_indented(record.value)
        return printer(partition, record if lines is None else structs.replace(record, value=lines))

    return print_record


def print_json_line(partition: TopicPartition, record: Record) -> bytes:
    shown: dict[str, object] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_text_or_base64("key", record.key),
        **_text_or_base64("value", record.value),
        "headers": [{"name": name, **_text_or_base64("value", value)} for name, value in record.headers],
    }
    return msgspec.json.encode(shown) + b"\n"


def _constant(text: bytes) -> Printer:
    return lambda _, __: text


def _text_or_base64(name: str, field: bytes | None) -> dict[str, str | None]:
    if field is None:
        return {name: None}
    try:
        return {name: field.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(field).decode()}
