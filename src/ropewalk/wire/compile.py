"""Turns a message class into straight-line Python, once per version.

For every (class, version) two functions are written as source and compiled at first use: nested structures are
unrolled into one function, adjacent fields of known width become one `struct.Struct`, and the length in front of
a string or an array is unpacked together with the fields before it. `source_of` shows what was written.

How hostile bytes are held
    Positions only grow. Reading past the frame therefore either leaves the buffer, which `struct` and indexing
    refuse, or ends at a position other than `end`, which is checked once, last. Nothing decoded is handed out
    before that check.
    Lengths are checked for their sign, or positions could move back.
    A count is checked against the bytes that are left before anything is allocated for it.
`Api` turns what `struct` and indexing raise into `ProtocolError`; whoever calls a compiled decoder bare does so too.
"""

import linecache
from collections.abc import Callable
from struct import Struct as Layout
from struct import pack, unpack_from
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from msgspec import NODEFAULT

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.schema import Array, Blob, Field, Kind, Structure, Text, fields_of, size_min
from ropewalk.wire.types import Buffer, Fixed, Message, RecordSet
from ropewalk.wire.varint import STRING_BYTES_MAX, decode_varint, encode_varint, finish_varint, skip_tags

M = TypeVar("M", bound=Message)

Decoder: TypeAlias = Callable[[memoryview, int, int], M]
"""(buffer, position, end) to a message that fills those bytes exactly."""

Encoder: TypeAlias = Callable[[M], list[Buffer]]
"""A message to chunks, in order."""


def compile_decoder(message: type[M], version: int, *, flexible: bool) -> "Decoder[M]":
    writer = _DecoderWriter(version, flexible=flexible)
    function: Decoder[M] = writer.compile(message)
    return function


def compile_encoder(message: type[M], version: int, *, flexible: bool) -> "Encoder[M]":
    writer = _EncoderWriter(version, flexible=flexible)
    function: Encoder[M] = writer.compile(message)
    return function


def source_of(message: type[Message], version: int, *, flexible: bool) -> str:
    """The Python that the two compilers write, for reading and for debugging."""
    writers = (_DecoderWriter(version, flexible=flexible), _EncoderWriter(version, flexible=flexible))
    return "\n\n".join(writer.source(message) for writer in writers)


class _Writer:
    """What writing a decoder and writing an encoder have in common: lines, names, and the pending run.

    The run is the list of adjacent values of known width that no code has been written for yet.
    """

    direction: str

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

    def _name(self, stem: str) -> str:
        self._name_count += 1
        return f"{stem}_{self._name_count}"

    def _constant(self, stem: str, value: object) -> str:
        name = self._name(stem)
        self._scope[name] = value
        return name

    def _plain_fields(self, message: type[Message]) -> list[Field]:
        return [field for field in fields_of(message) if field.exists(self._version) and field.tag is None]

    def _tagged_fields(self, message: type[Message]) -> list[Field]:
        found = [
            field for field in fields_of(message) if field.exists(self._version) and field.tag is not None
        ]
        assert self._flexible or not found, f"{message.__qualname__} has tags in version {self._version}"
        return sorted(found, key=lambda field: field.tag or 0)


class _DecoderWriter(_Writer):
    """Writes `decode(buffer, position, end)`."""

    direction = "decode"

    def _write_function(self, message: type[Message]) -> None:
        self._scope.update(
            unpack_from=unpack_from,
            finish_varint=finish_varint,
            decode_varint=decode_varint,
            skip_tags=skip_tags,
            refuse_length=_refuse_length,
            refuse_count=_refuse_count,
            refuse_end=_refuse_end,
            refuse_tag=_refuse_tag,
        )
        self._line("def decode(buffer, position, end):")
        self._depth += 1
        result = self._structure(message)
        self._line("if position != end: refuse_end(position, end)")
        self._line(f"return {result}")

    def _structure(self, message: type[Message]) -> str:
        """Writes code that reads all fields; answers the expression that makes the message from them."""
        values = {
            field.name: self._value(field.kind, field.name, field) for field in self._plain_fields(message)
        }
        if self._flexible:
            values.update(self._tags(message))
        self._flush()
        return self._construction(message, values)

    def _construction(self, message: type[Message], values: dict[str, str]) -> str:
        arguments = []
        pending_defaults: list[str] = []
        for field in fields_of(message):
            if field.name in values:
                arguments += [*pending_defaults, values[field.name]]
                pending_defaults = []
            else:
                assert field.default is not NODEFAULT, f"{message.__qualname__}.{field.name} needs a default"
                pending_defaults.append(self._constant(field.name, field.default))
        # Defaults at the end are left to the class, which fills them in faster than we can pass them.
        return f"{self._constant(message.__name__, message)}({', '.join(arguments)})"

    def _value(self, kind: Kind, stem: str, field: Field | None = None) -> str:
        """Writes code that reads one value; answers the name that holds it once the run is flushed."""
        name = self._name(stem)
        nullable = field is not None and field.nullable(self._version)
        match kind:
            case Fixed(code):
                assert not nullable, f"{stem}: a value of fixed width cannot be null"
                self._run.append((code, name))
            case Text():
                self._sized(
                    name, f"buffer[position:{name}_stop].tobytes().decode()", nullable=nullable, text=True
                )
            case Blob():
                self._sized(name, f"buffer[position:{name}_stop].tobytes()", nullable=nullable)
            case RecordSet():
                self._sized(name, f"buffer[position:{name}_stop]", nullable=nullable)
            case Structure(message):
                self._nested(name, message, nullable=nullable)
            case Array(element):
                self._array(name, element, nullable=nullable)
        return name

    def _sized(self, name: str, expression: str, *, nullable: bool, text: bool = False) -> None:
        """A length, then that many bytes. Compact lengths are one larger than they mean, so that 0 is null."""
        length = f"{name}_length"
        if self._flexible:
            self._run.append(("B", length))
            self._flush()
            limit = f", {STRING_BYTES_MAX + 1}" if text else ""
            self._line(
                f"if {length} > 127: {length}, position = finish_varint(buffer, position, {length}{limit})"
            )
            present, null, stop = length, f"not {length}", f"position + {length} - 1"
        else:
            self._run.append(("h" if text else "i", length))
            self._flush()
            present, null, stop = f"{length} >= 0", f"{length} == -1", f"position + {length}"
        self._line(f"if {present}:")
        self._line(f"    {name}_stop = {stop}")
        self._line(f"    {name} = {expression}")
        self._line(f"    position = {name}_stop")
        if nullable:
            self._line(f"elif {null}: {name} = None")
        self._line(f"else: refuse_length({name!r}, {length})")

    def _nested(self, name: str, message: type[Message], *, nullable: bool) -> None:
        if not nullable:
            construction = self._structure(message)
            self._line(f"{name} = {construction}")
            return
        self._run.append(("b", f"{name}_presence"))
        self._flush()
        self._line(f"if {name}_presence < 0: {name} = None")
        self._line("else:")
        self._depth += 1
        construction = self._structure(message)
        self._line(f"{name} = {construction}")
        self._depth -= 1

    def _array(self, name: str, element: Kind, *, nullable: bool) -> None:
        count = f"{name}_count"
        if self._flexible:
            self._run.append(("B", count))
            self._flush()
            self._line(f"if {count} > 127: {count}, position = finish_varint(buffer, position, {count})")
            self._line(f"{count} -= 1")
        else:
            self._run.append(("i", count))
            self._flush()
        if nullable:
            self._line(f"if {count} == -1: {name} = None")
            self._line("else:")
            self._depth += 1
        # An element of no bytes at all is counted as one byte: a count must never come free.
        size = max(1, size_min(element, self._version, flexible=self._flexible))
        times = "" if size == 1 else f" * {size}"
        self._line(
            f"if {count} < 0 or {count}{times} > end - position: refuse_count({name!r}, {count}, end - position)"
        )
        if isinstance(element, Fixed) and len(element.code) == 1:
            self._line(f'{name} = unpack_from(f">{{{count}}}{element.code}", buffer, position)')
            self._line(f"position += {count}{times}")
        else:
            self._elements(name, element, count)
        if nullable:
            self._depth -= 1

    def _elements(self, name: str, element: Kind, count: str) -> None:
        self._line(f"{name}_items = []")
        self._line(f"for _ in range({count}):")
        self._depth += 1
        if isinstance(element, Structure):
            value = self._structure(element.message)
        else:
            value = self._value(element, f"{name}_item")
            self._flush()
        self._line(f"{name}_items.append({value})")
        self._depth -= 1
        self._line(f"{name} = tuple({name}_items)")

    def _tags(self, message: type[Message]) -> dict[str, str]:
        """The tagged section: fields we know by their number, and others, which are skipped."""
        fields = self._tagged_fields(message)
        count = self._name("tag_count")
        self._run.append(("B", count))
        self._flush()
        if not fields:
            self._line(f"if {count}: position = skip_tags(buffer, position, {count})")
            return {}
        values = {field.name: self._name(field.name) for field in fields}
        for field in fields:
            self._line(f"{values[field.name]} = {self._constant(field.name + '_default', field.default)}")
        self._line(f"if {count}:")
        self._depth += 1
        self._line(f"if {count} > 127: {count}, position = finish_varint(buffer, position, {count})")
        self._line(f"for _ in range({count}):")
        self._depth += 1
        tag, stop = self._name("tag"), self._name("tag_stop")
        self._line(f"{tag}, position = decode_varint(buffer, position)")
        self._line(f"{stop}, position = decode_varint(buffer, position)")
        self._line(f"{stop} += position")
        for position, field in enumerate(fields):
            self._line(f"{'elif' if position else 'if'} {tag} == {field.tag}:")
            self._depth += 1
            value = self._value(field.kind, field.name, field)
            self._flush()
            self._line(f"{values[field.name]} = {value}")
            self._line(f"if position != {stop}: refuse_tag({tag}, position, {stop})")
            self._depth -= 1
        self._line(f"else: position = {stop}")
        self._depth -= 2
        return values

    def _flush(self) -> None:
        if not self._run:
            return
        names = ", ".join(name for _, name in self._run)
        if [code for code, _ in self._run] == ["B"]:
            self._line(f"{names} = buffer[position]; position += 1")
        else:
            layout = Layout(">" + "".join(code for code, _ in self._run))
            comma = "," if len(self._run) == 1 else ""
            unpack = self._constant("unpack", layout.unpack_from)
            self._line(f"{names}{comma} = {unpack}(buffer, position); position += {layout.size}")
        self._run.clear()


class _EncoderWriter(_Writer):
    """Writes `encode(message)`."""

    direction = "encode"

    def _write_function(self, message: type[Message]) -> None:
        self._scope.update(pack=pack, encode_varint=encode_varint, varints=_VARINTS, refuse_text=_refuse_text)
        self._line("def encode(message):")
        self._depth += 1
        self._line("chunks = []")
        self._line("parts = []")
        self._line("write = parts.append")
        self._structure(message, "message")
        self._flush()
        self._line('chunks.append(b"".join(parts))')
        self._line("return chunks")

    def _structure(self, message: type[Message], source: str) -> None:
        for field in self._plain_fields(message):
            self._value(field.kind, f"{source}.{field.name}", field.name, field)
        if self._flexible:
            self._tags(message, source)

    def _value(self, kind: Kind, source: str, stem: str, field: Field | None = None) -> None:
        """Writes code that appends the value of the expression `source`."""
        nullable = field is not None and field.nullable(self._version)
        match kind:
            case Fixed(code):
                self._run.append((code, source))
            case Text():
                self._text(source, self._name(stem), nullable=nullable)
            case Blob() | RecordSet():
                self._bytes(source, self._name(stem), nullable=nullable, apart=isinstance(kind, RecordSet))
            case Structure(message):
                self._nested(message, source, self._name(stem), nullable=nullable)
            case Array(element):
                self._array(element, source, self._name(stem), nullable=nullable)

    def _text(self, source: str, name: str, *, nullable: bool) -> None:
        self._line(f"{name} = {source}")
        if nullable:
            self._line(f'if {name} is None: {name}_raw = b""; {name}_length = {self._null}')
            self._line("else:")
            self._depth += 1
        self._line(f"{name}_raw = {name}.encode()")
        self._line(f"{name}_length = len({name}_raw)")
        self._line(f"if {name}_length > {STRING_BYTES_MAX}: refuse_text({name!r}, {name}_length)")
        if self._flexible:
            self._line(f"{name}_length += 1")
        if nullable:
            self._depth -= 1
        self._prefix(f"{name}_length", "h")
        self._line(f"write({name}_raw)")

    def _bytes(self, source: str, name: str, *, nullable: bool, apart: bool) -> None:
        self._line(f"{name} = {source}")
        present = f"len({name}) + 1" if self._flexible else f"len({name})"
        null = f"{self._null} if {name} is None else " if nullable else ""
        self._line(f"{name}_length = {null}{present}")
        self._prefix(f"{name}_length", "i")
        self._line(f"if {name}:")
        if apart:
            self._line('    chunks.append(b"".join(parts))')
            self._line(f"    chunks.append({name})")
            self._line("    parts.clear()")
        else:
            self._line(f"    write({name})")

    def _nested(self, message: type[Message], source: str, name: str, *, nullable: bool) -> None:
        self._line(f"{name} = {source}")
        if not nullable:
            self._structure(message, name)
            return
        self._flush()
        self._line(f'if {name} is None: write(b"\\xff")')
        self._line("else:")
        self._depth += 1
        self._run.append(("b", "1"))
        self._structure(message, name)
        self._flush()
        self._depth -= 1

    def _array(self, element: Kind, source: str, name: str, *, nullable: bool) -> None:
        self._line(f"{name} = {source}")
        present = f"len({name}) + 1" if self._flexible else f"len({name})"
        null = f"{self._null} if {name} is None else " if nullable else ""
        self._line(f"{name}_count = {null}{present}")
        self._prefix(f"{name}_count", "i")
        self._line(f"if {name}:")
        self._depth += 1
        if isinstance(element, Fixed) and len(element.code) == 1:
            self._line(f'write(pack(f">{{len({name})}}{element.code}", *{name}))')
        else:
            self._line(f"for {name}_item in {name}:")
            self._depth += 1
            if isinstance(element, Structure):
                self._structure(element.message, f"{name}_item")
            else:
                self._value(element, f"{name}_item", f"{name}_item")
            self._flush(or_pass=True)
            self._depth -= 1
        self._depth -= 1

    def _tags(self, message: type[Message], source: str) -> None:
        fields = self._tagged_fields(message)
        if not fields:
            self._run.append(("x", ""))
            return
        self._flush()
        names = {field.name: self._name(field.name) for field in fields}
        changed = {}
        for field in fields:
            name, default = names[field.name], self._constant(field.name + "_default", field.default)
            self._line(f"{name} = {source}.{field.name}")
            self._line(f"{name}_changed = {name} is not {default} and {name} != {default}")
            changed[field.name] = f"{name}_changed"
        self._line(f"if {' or '.join(changed.values())}:")
        self._depth += 1
        self._line(f"write(encode_varint({' + '.join(changed.values())}))")
        for field in fields:
            self._line(f"if {changed[field.name]}:")
            self._depth += 1
            self._tagged(field, names[field.name])
            self._depth -= 1
        self._depth -= 1
        self._line('else: write(b"\\0")')

    def _tagged(self, field: Field, name: str) -> None:
        """The value is written aside, because its size comes first."""
        self._line(f"{name}_outer = parts")
        self._line("parts = []; write = parts.append")
        self._value(field.kind, name, field.name, field)
        self._flush()
        self._line(f'{name}_raw = b"".join(parts)')
        self._line(f"parts = {name}_outer; write = parts.append")
        self._line(f"write(encode_varint({field.tag}) + encode_varint(len({name}_raw)) + {name}_raw)")

    @property
    def _null(self) -> str:
        return "0" if self._flexible else "-1"

    def _prefix(self, length: str, code: str) -> None:
        """Ends the run with a length. A compact length of one byte, the usual one, is packed with the run."""
        if not self._flexible:
            self._run.append((code, length))
            self._flush()
        elif not self._run:
            self._line(f"write(varints[{length}] if {length} < 128 else encode_varint({length}))")
        else:
            run = list(self._run)
            self._run.append(("B", length))
            self._line(f"if {length} < 128:")
            self._depth += 1
            self._flush()
            self._depth -= 1
            self._line("else:")
            self._depth += 1
            self._run = run
            self._flush()
            self._line(f"write(encode_varint({length}))")
            self._depth -= 1

    def _flush(self, *, or_pass: bool = False) -> None:
        if not self._run:
            if or_pass:
                self._line("pass")
            return
        codes = "".join(code for code, _ in self._run)
        values = ", ".join(value for code, value in self._run if code != "x")
        if values:
            self._line(f"write({self._constant('pack', Layout('>' + codes).pack)}({values}))")
        else:
            self._line(f"write({bytes(len(codes))!r})")
        self._run.clear()


_VARINTS: Final = tuple(encode_varint(value) for value in range(128))


def _refuse_length(name: str, length: int) -> NoReturn:
    raise ProtocolError(f"{_plain(name)} has a length of {length}")


def _refuse_count(name: str, count: int, remaining_bytes: int) -> NoReturn:
    raise ProtocolError(f"{_plain(name)} announces {count} elements with {remaining_bytes} bytes left")


def _refuse_end(position: int, end: int) -> NoReturn:
    raise ProtocolError(
        f"the message ends {abs(position - end)} bytes {'after' if position > end else 'before'} its frame"
    )


def _refuse_tag(tag: int, position: int, stop: int) -> NoReturn:
    raise ProtocolError(
        f"tagged field {tag} ends {abs(position - stop)} bytes {'after' if position > stop else 'before'} its size"
    )


def _refuse_text(name: str, length: int) -> NoReturn:
    raise ProtocolError(
        f"{_plain(name)} is a string of {length} bytes, the protocol carries {STRING_BYTES_MAX}"
    )


def _plain(name: str) -> str:
    """The field's name, from the numbered name that the code gave it."""
    return name.rpartition("_")[0]
