"""What a value is, as a user says it; what tasks are sent of that; and the reader that a task makes of it.

    settings --resolve, in the driver--> `ResolvedFormat` --sent to tasks--> `open_reader` --> `ValueReader.read`

What a reader could get wrong
    A schema's file is read once, when the pipeline starts; a registry is asked for the newest schema before each batch. All tasks
    of a batch, and the table, have the same columns. A schema is registered before anything is written by it, so the newest one that is asked for when a
    batch's offsets are known already has the columns of all its rows.
    Tasks ask the registry only by number.
    A value of null is no fault: it is a tombstone, and its columns are null.
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

import pyarrow as pa
from msgspec import Struct

from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.registry import Registry, UnknownSchema
from ropewalk.spark.values.schemas import SchemaText
from ropewalk.spark.values.shapes import Read

SCHEMA_BYTES_MAX: Final = 16 << 20


class ValueFormat(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings. `raw` leaves values as they are and needs nothing else."""

    format: Literal["raw", "json", "avro", "protobuf"] = "raw"
    schema: str | None = None
    """A file: JSON Schema, a schema of Avro (.avsc), or a set of Protobuf's descriptors as `protoc` writes it."""
    registry: str | None = None
    """A registry's URL, user and password in it where they are needed. Values then have its prefix of five bytes."""
    subject: str | None = None
    """Whose newest schema the columns come from where no file is named; `<topic>-value` unless told."""
    message: str | None = None
    """Of Protobuf, the message's full name; the file's first one unless told."""
    prefix: bool = False
    """Values have a registry's prefix although no registry is named; it is taken off. Avro needs the registry."""
    unknown_fields: Literal["ignore", "keep", "refuse"] = "ignore"
    """Of JSON: what becomes of fields that the schema does not name. `keep` puts them into a column `_rest`."""


_OF_FORMATS: Final = {
    "schema": ("json", "avro", "protobuf"),
    "registry": ("json", "avro", "protobuf"),
    "subject": ("json", "avro", "protobuf"),
    "message": ("protobuf",),
    "prefix": ("json", "avro", "protobuf"),
    "unknown_fields": ("json",),
}
"""What a setting means nothing to is not told it: somebody believes in something that is not there."""


class ResolvedFormat(Struct, frozen=True):
    """All that tasks need, without the file."""

    settings: ValueFormat
    schema: SchemaText | None = None


class ValueReader(Protocol):
    def schema(self) -> pa.Schema | None:
        """The columns of a value; None where it stays bytes."""
        ...

    def read(self, values: pa.Array) -> Read: ...


def resolve(settings: ValueFormat, topics: Sequence[str] = ()) -> ResolvedFormat:
    """Looks at the schema's file or asks the registry, and refuses what does not go together."""
    kind = settings.format
    useless = [name for name, kinds in _OF_FORMATS.items() if kind not in kinds and _is_said(settings, name)]
    if useless:
        kinds = " or ".join(_OF_FORMATS[useless[0]])
        raise WrongUse(f"format {kind} has no use for {useless[0]}; say format {kinds}, or leave it out")
    if kind == "raw":
        return ResolvedFormat(settings)
    if kind == "avro" and settings.prefix and settings.registry is None:
        raise WrongUse(
            "Avro with a prefix can only be read with the registry that the prefix refers to: say registry"
        )
    if settings.schema is not None:
        return ResolvedFormat(settings, _from_file(settings.schema, kind))
    if settings.registry is None:
        raise WrongUse(f"format {kind} needs a schema: name a file with schema, or a registry")
    subject = settings.subject
    if subject is None:
        if len(topics) != 1:
            raise WrongUse(
                "several topics and no schema: say which subject of the registry the columns come from"
            )
        subject = f"{topics[0]}-value"
    try:
        return ResolvedFormat(settings, Registry(settings.registry).latest(subject, kind))
    except UnknownSchema as error:
        raise WrongUse(f"{error}; say another subject, or name a file with schema") from None


def _is_said(settings: ValueFormat, name: str) -> bool:
    return bool(getattr(settings, name) != getattr(ValueFormat(), name))


def newest(resolved: ResolvedFormat, topics: Sequence[str] = ()) -> ResolvedFormat:
    """The same by what the registry has by now. A file is not looked at again: it may be on another machine."""
    settings = resolved.settings
    return resolve(settings, topics) if settings.format != "raw" and settings.schema is None else resolved


def open_reader(resolved: ResolvedFormat) -> ValueReader:
    settings, schema = resolved.settings, resolved.schema
    if settings.format == "raw" or schema is None:
        return RawReader()
    registry = None if settings.registry is None else Registry(settings.registry)
    is_framed = settings.prefix or registry is not None
    match settings.format:
        case "json":
            from ropewalk.spark.values.json_values import JsonReader

            return JsonReader(schema, is_framed=is_framed, unknown_fields=settings.unknown_fields)
        case "avro":
            from ropewalk.spark.values.avro_values import AvroReader

            return AvroReader(schema, registry)
        case "protobuf":
            from ropewalk.spark.values.protobuf_values import ProtobufReader

            return ProtobufReader(schema, settings.message, is_framed=is_framed, registry=registry)


class RawReader:
    """Bytes stay bytes; there is nothing that could be wrong with them."""

    def schema(self) -> pa.Schema | None:
        return None

    def read(self, values: pa.Array) -> Read:
        return Read(pa.StructArray.from_arrays([values], names=["value"]), pa.nulls(len(values), pa.string()))


def _from_file(path: str, kind: Literal["json", "avro", "protobuf"]) -> SchemaText:
    try:
        with Path(path).open("rb") as file:
            data = file.read(SCHEMA_BYTES_MAX + 1)
    except OSError as error:
        raise WrongUse(f"the schema {path} cannot be read: {error.strerror}") from None
    if len(data) > SCHEMA_BYTES_MAX:
        raise WrongUse(f"the schema {path} is larger than {SCHEMA_BYTES_MAX} bytes")
    if kind == "protobuf":
        return SchemaText(kind, base64.b64encode(data).decode(), is_set=True)
    try:
        return SchemaText(kind, data.decode())
    except UnicodeDecodeError:
        raise WrongUse(f"the schema {path} is not text; it must be JSON") from None
