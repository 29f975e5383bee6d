"""Writes the source of `encode(message)` for one version of a message.

The small parts between two record sets are collected and joined once; a record set is a chunk of its own, as given.
"""

from struct import Struct as Layout
from struct import pack
from typing import NoReturn

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.code_writer import CodeWriter, plain_name
from ropewalk.wire.schema import Array, Blob, Field, Kind, Structure, Text
from ropewalk.wire.types import Fixed, Message, RecordSet
from ropewalk.wire.varint import STRING_BYTES_MAX, VARINTS, encode_varint


class EncoderWriter(CodeWriter):
    direction = "encode"

    def _write_function(self, message: type[Message]) -> None:
        self._scope.update(pack=pack, encode_varint=encode_varint, varints=VARINTS, refuse_text=_refuse_text)
        with self._block("def encode(message):"):
            self._line("chunks = []")
            self._line("parts = []; write = parts.append")
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
                if code == "16s":  # `struct` would cut or pad another length silently
                    self._line(f"assert len({source}) == 16, {stem!r}")
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
            with self._block("else:"):
                self._encode_text(name)
        else:
            self._encode_text(name)
        self._prefix(f"{name}_length", "h")
        self._line(f"write({name}_raw)")

    def _encode_text(self, name: str) -> None:
        self._line(f"{name}_raw = {name}.encode()")
        self._line(f"{name}_length = len({name}_raw)")
        self._line(f"if {name}_length > {STRING_BYTES_MAX}: refuse_text({name!r}, {name}_length)")
        if self._flexible:
            self._line(f"{name}_length += 1")

    def _bytes(self, source: str, name: str, *, nullable: bool, apart: bool) -> None:
        self._counted(source, name, nullable=nullable)
        with self._block(f"if {name}:"):
            if apart:
                self._line('chunks.append(b"".join(parts)); parts.clear()')
                self._line(f"chunks.append({name})")
            else:
                self._line(f"write({name})")

    def _counted(self, source: str, name: str, *, nullable: bool) -> None:
        """What has a length, by the name it will be known as, and that length."""
        self._line(f"{name} = {source}")
        null = f"{self._null} if {name} is None else " if nullable else ""
        self._line(f"{name}_length = {null}len({name}){' + 1' if self._flexible else ''}")
        self._prefix(f"{name}_length", "i")

    def _nested(self, message: type[Message], source: str, name: str, *, nullable: bool) -> None:
        self._line(f"{name} = {source}")
        if not nullable:
            self._structure(message, name)
            return
        self._flush()
        self._line(f'if {name} is None: write(b"\\xff")')
        with self._block("else:"):
            self._run.append(("b", "1"))
            self._structure(message, name)
            self._flush()

    def _array(self, element: Kind, source: str, name: str, *, nullable: bool) -> None:
        self._counted(source, name, nullable=nullable)
        with self._block(f"if {name}:"):
            if isinstance(element, Fixed) and len(element.code) == 1:
                self._line(f'write(pack(f">{{len({name})}}{element.code}", *{name}))')
                return
            with self._block(f"for {name}_item in {name}:"):
                if isinstance(element, Structure):
                    self._structure(element.message, f"{name}_item")
                else:
                    self._value(element, f"{name}_item", f"{name}_item")
                self._flush()

    def _tags(self, message: type[Message], source: str) -> None:
        """The tagged section. All defaults is the usual case, and those are nearly always the very same objects."""
        fields = self._tagged_fields(message)
        if not fields:
            self._run.append(("x", ""))
            return
        self._flush()
        names = [self._name(field.name) for field in fields]
        defaults = [self._constant(f"{field.name}_default", field.default) for field in fields]
        for field, name in zip(fields, names, strict=True):
            self._line(f"{name} = {source}.{field.name}")
        untouched = " and ".join(
            f"{name} is {default}" for name, default in zip(names, defaults, strict=True)
        )
        self._line(f'if {untouched}: write(b"\\0")')
        with self._block("else:"):
            for name, default in zip(names, defaults, strict=True):
                self._line(f"{name}_changed = {name} != {default}")
            self._line(f"write(encode_varint({' + '.join(f'{name}_changed' for name in names)}))")
            for field, name in zip(fields, names, strict=True):
                with self._block(f"if {name}_changed:"):
                    self._tagged(field, name)

    def _tagged(self, field: Field, name: str) -> None:
        """The value is written aside, because its size comes first."""
        self._line(f"{name}_outer = parts; parts = []; write = parts.append")
        self._value(field.kind, name, field.name, field)
        self._flush()
        self._line(f'{name}_raw = b"".join(parts); parts = {name}_outer; write = parts.append')
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
            run_before = list(self._run)
            with self._block(f"if {length} < 128:"):
                self._run.append(("B", length))
                self._flush()
            with self._block("else:"):
                self._run = run_before
                self._flush()
                self._line(f"write(encode_varint({length}))")

    def _flush(self) -> None:
        if not self._run:
            return
        codes = "".join(code for code, _ in self._run)
        values = ", ".join(value for code, value in self._run if code != "x")
        if values:
            self._line(f"write({self._constant('pack', Layout('>' + codes).pack)}({values}))")
        else:
            self._line(f"write({bytes(len(codes))!r})")
        self._run.clear()


def _refuse_text(name: str, length: int) -> NoReturn:
    raise ProtocolError(
        f"{plain_name(name)} is a string of {length} bytes, the protocol carries {STRING_BYTES_MAX}"
    )
