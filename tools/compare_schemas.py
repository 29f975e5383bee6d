"""Compares our message classes with the schemas inside a kafka-clients jar. For developers; nothing depends on it.

    mvn dependency:get -Dartifact=org.apache.kafka:kafka-clients:4.4.0
    python tools/compare_schemas.py ~/.m2/repository/org/apache/kafka/kafka-clients/4.4.0/kafka-clients-4.4.0.jar

Every API under `ropewalk.wire.messages` is walked beside Kafka's schema of the same key, field by field in wire
order: structure and field names, wire types, the versions that carry a field, nullability, tags and defaults. Each
difference is one line; the exit code says whether there was any. The schemas are read where they are and not kept.
"""

import importlib
import json
import pkgutil
import re
import sys
import zipfile
from collections.abc import Iterator
from typing import Any, Final

from msgspec import NODEFAULT

from ropewalk.wire import messages
from ropewalk.wire.api import NEVER_FLEXIBLE, AnyApi
from ropewalk.wire.schema import Array, Blob, Field, Kind, Structure, Text, fields_of
from ropewalk.wire.types import VERSION_LAST, Fixed, Message, RecordSet

Schema = dict[str, Any]
"""A piece of Kafka's JSON, whose shape is Kafka's to define."""

_FIELD_NAMES: Final = {
    "throttle_time_ms": {"throttle_ms"},
    "partition_index": {"index"},
    "partition_id": {"index"},
    "partition": {"index"},
    "topic": {"name"},
    "topic_data": {"topics"},
    "responses": {"topics", "responses"},
    "partition_data": {"partitions"},
    "partition_responses": {"partitions"},
    "partition_result": {"partitions"},
    "forgotten_topics_data": {"forgotten_topics"},
    "group_instance_id": {"instance_id"},
}
"""Where our name is not Kafka's in snake case."""

_STRUCTURE_NAMES: Final = {"EntryDataResponse": "EntryData"}

_WIRE_TYPES: Final[dict[str, Kind]] = {
    "bool": Fixed("?"),
    "int8": Fixed("b"),
    "int16": Fixed("h"),
    "uint16": Fixed("H"),
    "int32": Fixed("i"),
    "uint32": Fixed("I"),
    "int64": Fixed("q"),
    "float64": Fixed("d"),
    "uuid": Fixed("16s"),
    "string": Text(),
    "bytes": Blob(),
    "records": RecordSet(),
}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__)
        return 2
    schemas = {(schema["apiKey"], schema["type"]): schema for schema in read_schemas(arguments[0])}
    apis = list(find_apis())
    differences = [difference for api in apis for difference in compare(api, schemas)]
    for difference in differences:
        print(difference)
    print(f"{len(apis)} APIs compared, {len(differences)} differences")
    return 1 if differences else 0


def read_schemas(jar: str) -> Iterator[Schema]:
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(("Request.json", "Response.json")):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                yield json.loads(text)


def find_apis() -> Iterator[AnyApi]:
    for module in pkgutil.iter_modules(messages.__path__):
        yield importlib.import_module(f"{messages.__name__}.{module.name}").API


def compare(api: AnyApi, schemas: dict[tuple[int, str], Schema]) -> Iterator[str]:
    for direction, message in (("request", api.request), ("response", api.response)):
        schema = schemas[api.key, direction]
        first, last = parse_versions(schema["validVersions"])
        if schemas[api.key, "request"].get("latestVersionUnstable", False):
            last -= 1
        if (first, last) != (api.version_min, api.version_max):
            yield f"{schema['name']}: versions {api.version_min}-{api.version_max}, Kafka {first}-{last}"
        flexible = parse_versions(schema["flexibleVersions"])
        flexible_since = flexible[0] if flexible[0] <= flexible[1] else NEVER_FLEXIBLE
        if flexible_since != api.flexible_since:
            yield f"{schema['name']}: flexible since {api.flexible_since}, Kafka {flexible_since}"
        if message.__name__ != schema["name"]:
            yield f"{schema['name']}: our class is {message.__name__}"
        shared = {structure["name"]: structure["fields"] for structure in schema.get("commonStructs", [])}
        yield from compare_fields(message, schema["fields"], shared, range(first, last + 1), schema["name"])


def compare_fields(
    message: type[Message], theirs: list[Schema], shared: dict[str, list[Schema]], versions: range, path: str
) -> Iterator[str]:
    """Only `versions` count: what Kafka's schema says about versions it has dropped is of no interest."""
    ours = [field for field in fields_of(message) if any(map(field.exists, versions))]
    alive = [schema for schema in theirs if carried(schema["versions"], versions)]
    if len(ours) != len(alive):
        yield f"{path}: {[field.name for field in ours]} beside {[schema['name'] for schema in alive]}"
        return
    for field, schema in zip(ours, alive, strict=True):
        place = f"{path}.{schema['name']}"
        yield from compare_field(field, schema, versions, place)
        structure = field.kind.element if isinstance(field.kind, Array) else field.kind
        if isinstance(structure, Structure):
            name = schema["type"].removeprefix("[]")
            our_name = structure.message.__name__
            if _STRUCTURE_NAMES.get(our_name, our_name) != name:
                yield f"{place}: our class is {our_name}, Kafka's {name}"
            within = range(
                min(carried(schema["versions"], versions)), max(carried(schema["versions"], versions)) + 1
            )
            inner = schema.get("fields") or shared[name]
            yield from compare_fields(structure.message, inner, shared, within, place)


def compare_field(field: Field, schema: Schema, versions: range, place: str) -> Iterator[str]:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", schema["name"]).lower()
    if field.name not in _FIELD_NAMES.get(name, {name}):
        yield f"{place}: our name is {field.name}"
    if not same_type(field.kind, schema["type"]):
        yield f"{place}: {field.kind}, Kafka {schema['type']}"
        return
    their_versions = carried(schema["versions"], versions)
    our_versions = [version for version in versions if field.exists(version)]
    if our_versions != their_versions:
        yield f"{place}: in versions {our_versions}, Kafka {their_versions}"
    their_nulls = [
        version for version in their_versions if covers(schema.get("nullableVersions", "none"), version)
    ]
    our_nulls = [version for version in our_versions if field.nullable(version)]
    if our_nulls != their_nulls:
        yield f"{place}: nullable in {our_nulls}, Kafka {their_nulls}"
    their_tagged = [
        version for version in their_versions if covers(schema.get("taggedVersions", "none"), version)
    ]
    our_tagged = our_versions if field.tag is not None else []
    if (our_tagged, field.tag) != (their_tagged, schema.get("tag")):
        yield f"{place}: tag {field.tag} in {our_tagged}, Kafka {schema.get('tag')} in {their_tagged}"
    if "flexibleVersions" in schema:
        yield f"{place}: has flexible versions of its own, which our classes cannot say"
    if field.default is NODEFAULT:
        if their_versions != list(versions):
            yield f"{place}: needs a default"
    elif not same_default(field, schema):
        yield f"{place}: default {field.default!r}, Kafka {schema.get('default')!r}"


def same_type(kind: Kind, name: str) -> bool:
    if name.startswith("[]"):
        return isinstance(kind, Array) and same_type(kind.element, name.removeprefix("[]"))
    if name in _WIRE_TYPES:
        return kind == _WIRE_TYPES[name]
    return isinstance(kind, Structure)


def same_default(field: Field, schema: Schema) -> bool:
    written = schema.get("default")
    if written is None and "nullableVersions" in schema and field.tag is None and field.default is None:
        return True  # Kafka's Java says "" or [] here; on the wire the default of such a field is never seen.
    if written == "null":
        return field.default is None
    match field.kind:
        case Fixed("?"):
            return field.default == (str(written).lower() == "true")
        case Fixed("16s"):
            return field.default == bytes(16)
        case Fixed("d"):
            return field.default == float(written or 0)
        case Fixed():
            return field.default == int(str(written or 0), 0)
        case Text():
            return field.default == (written or "")
        case Blob() | RecordSet():
            return field.default == b""
        case Array():
            return field.default == ()
        case Structure(message):
            return field.default is not None and field.default == message()


def carried(text: str, versions: range) -> list[int]:
    return [version for version in versions if covers(text, version)]


def covers(text: str, version: int) -> bool:
    first, last = parse_versions(text)
    return first <= version <= last


def parse_versions(text: str) -> tuple[int, int]:
    """Both ends included: `3+`, `0-5`, `2`; `none` ends before it begins."""
    if text == "none":
        return 1, 0
    if text.endswith("+"):
        return int(text[:-1]), VERSION_LAST
    first, _, last = text.partition("-")
    return int(first), int(last or first)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
