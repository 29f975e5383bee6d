"""Writes the source of `decode(buffer, position, end)` for one version of a message.

How hostile bytes are held
    Positions only grow. Reading past the frame therefore either leaves the buffer, which `struct` and indexing
    refuse, or ends at a position other than `end`, which is checked once, last. Nothing decoded is handed out
    before that check.
    Lengths are checked for their sign, or positions could move back.
    A count is checked against the bytes that are left before anything is allocated for it.
    Elements and tagged fields are counted over the whole message where `elements_max` is given: they can be as short as
    two bytes, and a frame full of those would keep the loop busy for many seconds.
"""

from struct import Struct as Layout
from struct import unpack_from
from typing import NoReturn

from msgspec import NODEFAULT

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.code_writer import CodeWriter, plain_name
from ropewalk.wire.schema import Array, Blob, Field, Kind, Structure, Text, fields_of, size_min
from ropewalk.wire.types import Fixed, Message, RecordSet
from ropewalk.wire.varint import STRING_BYTES_MAX, decode_varint, finish_varint, skip_tags


class DecoderWriter(CodeWriter):
    direction = "decode"

    def __init__(self, version: int, *, flexible: bool, elements_max: int | None = None) -> None:
        super().__init__(version, flexible=flexible)
        self._elements_max = elements_max

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
            refuse_total=_refuse_total,
        )
        with self._block("def decode(buffer, position, end):"):
            if self._elements_max is not None:
                self._line(f"elements_left = {self._elements_max}")
            result = self._structure(message)
            # Bytes behind the last field are ignored, as Kafka does: some clients pad.
            self._line("if position > end: refuse_end(position, end)")
            self._line(f"return {result}")

    def _structure(self, message: type[Message]) -> str:
        """Writes code that reads all fields; answers the expression that makes the message from them."""
        values = {
            field.name: self._value(field.kind, field.name, field) for field in self._plain_fields(message)
        }
        if self._flexible:
            values.update(self._tags(message))
        self._flush()
        arguments: list[str] = []
        absent: list[str] = []
        for field in fields_of(message):
            if field.name in values:
                arguments += [*absent, values[field.name]]
                absent.clear()
            else:
                assert field.default is not NODEFAULT, f"{message.__qualname__}.{field.name} needs a default"
                absent.append(self._constant(field.name, field.default))
        # Absent fields at the end are left to the class, which fills them in faster than we can pass them.
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
        """A length, then that many bytes. A compact length is one larger than it means, so that 0 is null."""
        length = f"{name}_length"
        if self._flexible:
            self._compact(length, f", {STRING_BYTES_MAX + 1}" if text else "")
            present, stop = length, f"position + {length} - 1"
        else:
            self._run.append(("h" if text else "i", length))
            self._flush()
            present, stop = f"{length} >= 0", f"position + {length}"
        with self._block(f"if {present}:"):
            self._line(f"{name}_stop = {stop}")
            self._line(f"{name} = {expression}")
            self._line(f"position = {name}_stop")
        if nullable:
            self._line(f"elif {length} == {0 if self._flexible else -1}: {name} = None")
        self._line(f"else: refuse_length({name!r}, {length})")

    def _compact(self, length: str, limit: str = "") -> None:
        """A variable-length integer. Its first byte, nearly always the only one, is unpacked with the run."""
        self._run.append(("B", length))
        self._flush()
        self._line(
            f"if {length} > 127: {length}, position = finish_varint(buffer, position, {length}{limit})"
        )

    def _nested(self, name: str, message: type[Message], *, nullable: bool) -> None:
        if not nullable:
            construction = self._structure(message)
            self._line(f"{name} = {construction}")
            return
        self._run.append(("b", f"{name}_presence"))
        self._flush()
        self._line(f"if {name}_presence < 0: {name} = None")
        with self._block("else:"):
            construction = self._structure(message)
            self._line(f"{name} = {construction}")

    def _array(self, name: str, element: Kind, *, nullable: bool) -> None:
        count = f"{name}_count"
        if self._flexible:
            self._compact(count)
            self._line(f"{count} -= 1")
        else:
            self._run.append(("i", count))
            self._flush()
        if nullable:
            self._line(f"if {count} == -1: {name} = None")
            with self._block("else:"):
                self._elements(name, element, count)
        else:
            self._elements(name, element, count)

    def _elements(self, name: str, element: Kind, count: str) -> None:
        # An element of no bytes at all is counted as one byte: a count must never come free.
        size = max(1, size_min(element, self._version, flexible=self._flexible))
        size_bytes = count if size == 1 else f"{count} * {size}"
        with self._block(f"if {count} < 0 or {size_bytes} > end - position:"):
            self._line(f"refuse_count({name!r}, {count}, end - position)")
        if isinstance(element, Fixed) and len(element.code) == 1:
            self._line(f'{name} = unpack_from(f">{{{count}}}{element.code}", buffer, position)')
            self._line(f"position += {size_bytes}")
            return
        self._count(count)
        self._line(f"{name}_items = []")
        with self._block(f"for _ in range({count}):"):
            if isinstance(element, Structure):
                value = self._structure(element.message)
            else:
                value = self._value(element, f"{name}_item")
                self._flush()
            self._line(f"{name}_items.append({value})")
        self._line(f"{name} = tuple({name}_items)")

    def _tags(self, message: type[Message]) -> dict[str, str]:
        """The tagged section: fields we know by their number, and others, which are skipped."""
        fields = self._tagged_fields(message)
        count = self._name("tag_count")
        self._run.append(("B", count))
        self._flush()
        if not fields:
            with self._block(f"if {count}:"):
                self._count_tags(count)
                self._line(f"position = skip_tags(buffer, position, {count})")
            return {}
        values = {field.name: self._name(field.name) for field in fields}
        for field in fields:
            self._line(f"{values[field.name]} = {self._constant(field.name + '_default', field.default)}")
        with self._block(f"if {count}:"):
            self._count_tags(count)
            with self._block(f"for _ in range({count}):"):
                self._tag(fields, values)
        return values

    def _count_tags(self, count: str) -> None:
        self._line(f"if {count} > 127: {count}, position = finish_varint(buffer, position, {count})")
        self._count(count)

    def _count(self, count: str) -> None:
        if self._elements_max is not None:
            self._line(f"elements_left -= {count}")
            self._line(f"if elements_left < 0: refuse_total({self._elements_max})")

    def _tag(self, fields: list[Field], values: dict[str, str]) -> None:
        tag, stop = self._name("tag"), self._name("tag_stop")
        self._line(f"{tag}, position = decode_varint(buffer, position)")
        self._line(f"{stop}, position = decode_varint(buffer, position)")
        self._line(f"{stop} += position")
        for number, field in enumerate(fields):
            with self._block(f"{'elif' if number else 'if'} {tag} == {field.tag}:"):
                value = self._value(field.kind, field.name, field)
                self._flush()
                self._line(f"{values[field.name]} = {value}")
                self._line(f"if position != {stop}: refuse_tag({tag}, position, {stop})")
        self._line(f"else: position = {stop}")

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


def _refuse_length(name: str, length: int) -> NoReturn:
    raise ProtocolError(f"{plain_name(name)} has a length of {length}")


def _refuse_count(name: str, count: int, remaining_bytes: int) -> NoReturn:
    raise ProtocolError(f"{plain_name(name)} announces {count} elements with {remaining_bytes} bytes left")


def _refuse_total(elements_max: int) -> NoReturn:
    raise ProtocolError(f"the message has more than {elements_max} elements and tagged fields")


def _refuse_end(position: int, end: int) -> NoReturn:
    raise ProtocolError(f"the message ends {position - end} bytes after its frame")


def _refuse_tag(tag: int, position: int, stop: int) -> NoReturn:
    raise ProtocolError(
        f"tagged field {tag} ends {abs(position - stop)} bytes {'after' if position > stop else 'before'} its size"
    )
