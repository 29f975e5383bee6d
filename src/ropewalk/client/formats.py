"""How keys and values become bytes, and bytes become keys and values.

A format has `encode` and `decode`; anything with these two methods can be given to a producer or consumer. A value of None
is a tombstone and never reaches a format.

What a reader could get wrong
    Avro and Protobuf here are the bare encodings, without a registry's prefix: both sides know the schema.
    Avro needs the extra `ropewalk[avro]`, Protobuf `ropewalk[protobuf]`.
"""

from io import BytesIO
from typing import Any, Final, Protocol

import msgspec

from ropewalk.client.errors import NotOfFormat


class Format(Protocol):
    """The types of values are their owner's, which is why they are `Any` here and nowhere else in the room."""

    def encode(self, value: Any) -> bytes: ...

    def decode(self, data: bytes) -> Any: ...


class Text:
    """Strings, as UTF-8."""

    def encode(self, value: str) -> bytes:
        try:
            return value.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise NotOfFormat(f"{type(value).__name__} cannot be written as text: {error}") from None

    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise NotOfFormat(f"{len(data)} bytes are not text: {error}") from None


class Json:
    """Whatever msgspec can write; read as dictionaries and lists, or as the type that is named, and checked against it."""

    def __init__(self, kind: Any = Any) -> None:
        self._encode: Final = msgspec.json.Encoder().encode
        self._decode: Final = msgspec.json.Decoder(kind).decode

    def encode(self, value: Any) -> bytes:
        try:
            return self._encode(value)
        except (TypeError, msgspec.MsgspecError) as error:
            raise NotOfFormat(f"{type(value).__name__} cannot be written as JSON: {error}") from None

    def decode(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except msgspec.MsgspecError as error:
            raise NotOfFormat(f"{len(data)} bytes are not the JSON that was expected: {error}") from None


class Avro:
    """Records of one schema, given as Avro's own JSON: a dictionary, or the name of a primitive type."""

    def __init__(self, schema: Any) -> None:
        import fastavro

        self._schema: Final = fastavro.parse_schema(schema)
        self._write: Final = fastavro.schemaless_writer
        self._read: Final = fastavro.schemaless_reader

    def encode(self, value: Any) -> bytes:
        output = BytesIO()
        try:
            self._write(output, self._schema, value)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise NotOfFormat(f"{type(value).__name__} does not fit the Avro schema: {error}") from None
        return output.getvalue()

    def decode(self, data: bytes) -> Any:
        source = BytesIO(data)
        try:
            value = self._read(source, self._schema, None)
        except (ValueError, TypeError, EOFError, IndexError, StopIteration) as error:
            raise NotOfFormat(f"{len(data)} bytes are not of the Avro schema: {error!r}") from None
        if source.tell() != len(data):
            raise NotOfFormat(f"{len(data) - source.tell()} bytes follow the Avro record")
        return value


class Protobuf:
    """Messages of one class that `protoc` generated."""

    def __init__(self, kind: Any) -> None:
        self._kind: Final = kind

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, self._kind):
            raise NotOfFormat(f"{type(value).__name__} is not a {self._kind.__name__}")
        encoded: bytes = value.SerializeToString()
        return encoded

    def decode(self, data: bytes) -> Any:
        from google.protobuf.message import DecodeError

        try:
            return self._kind.FromString(data)
        except DecodeError as error:
            raise NotOfFormat(f"{len(data)} bytes are not a {self._kind.__name__}: {error}") from None
