"""Byte for byte what kio writes, and value for value what kio reads, wherever kio knows the version.

kio is generated from Kafka's schemas, so agreement with it is agreement with them. It dresses some integers up as
durations, dates and error codes; `plain` undresses them. Values those dresses do not fit are not invented.
"""

import dataclasses
import io
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from hypothesis import given, note
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

from ropewalk.wire.api import AnyApi
from ropewalk.wire.error_code import RETRIABLE, ErrorCode
from ropewalk.wire.schema import fields_of
from ropewalk.wire.types import Message
from tests.wire.invented import (
    DIRECTIONS,
    Direction,
    as_of,
    examples,
    for_every_direction_of_kafka,
    is_ours,
    messages_of,
)

_MILLISECOND: Final = timedelta(milliseconds=1)


def in_kio(api: AnyApi, version: int) -> bool:
    return version in schema_name_map[api_key_map[api.key]]


@for_every_direction_of_kafka
@examples(6)
@given(data=st.data())
def test_kio_reads_what_we_write_and_writes_the_same(direction: Direction, data: st.DataObject) -> None:
    load = load_request_schema if direction.name == "request" else load_response_schema
    message = data.draw(messages_of(direction.message))
    for version in direction.api.versions:
        if not in_kio(direction.api, version):
            continue
        note(f"version {version}")
        entity_type = load(direction.api.key, version)
        carried = as_of(message, version)
        encoded = direction.encode(version, carried)

        entity, consumed = entity_reader(entity_type)(encoded, 0)
        assert consumed == len(encoded)
        assert plain(entity, version) == plain(carried, version)

        written = io.BytesIO()
        entity_writer(entity_type)(written, entity)
        assert written.getvalue() == encoded


def test_the_versions_that_kio_lacks_are_those_with_golden_bytes() -> None:
    lacking = {
        (direction.api.name, version)
        for direction in DIRECTIONS
        for version in direction.api.versions
        if not in_kio(direction.api, version)
    }
    assert lacking == {("ApiVersions", 5), ("DeleteGroups", 3), ("TxnOffsetCommit", 6)}


def test_error_codes_agree_in_number_name_and_whether_to_try_again() -> None:
    for code in KioErrorCode:
        ours = ErrorCode(int(code))
        assert ours.name.lower() == code.name
        assert (ours in RETRIABLE) == code.retriable


def plain(value: object, version: int) -> Any:
    """A message of either library as nested tuples of numbers, strings and bytes, in the order of its fields."""
    match value:
        case Message():
            fields = [
                field for field in fields_of(type(value)) if field.exists(version) and not is_ours(field)
            ]
            return tuple(plain(getattr(value, field.name), version) for field in fields)
        case tuple():
            return tuple(plain(element, version) for element in value)
        case timedelta():
            return round(value / _MILLISECOND)
        case datetime():
            return round(value.timestamp() * 1000)
        case UUID():
            return value.bytes
        case _ if dataclasses.is_dataclass(value):
            return tuple(plain(_undressed(value, field), version) for field in dataclasses.fields(value))
        case _:
            return value


def _undressed(entity: object, field: "dataclasses.Field[Any]") -> object:
    value = getattr(entity, field.name)
    if value is None and field.metadata.get("kafka_type") == "uuid":
        return bytes(16)
    if value is None and field.metadata.get("kafka_type") == "datetime_i64":
        return -1
    return value
