"""Messages that hypothesis invents from nothing but the annotations of their class.

A message is invented with a value in every field that any version has, and `as_of` says what a given version makes
of it. So one draw, which is what costs, tests all versions.
"""

import importlib
import pkgutil
import struct
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ropewalk.wire import messages, peer
from ropewalk.wire.api import OWN_KEY_FIRST, AnyApi
from ropewalk.wire.schema import Array, Blob, Field, Kind, Structure, Text, fields_of
from ropewalk.wire.types import OWN_TAG_FIRST, VERSION_LAST, Fixed, Message, RecordSet

SPECIAL: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    # Not every number is an error code or a date to the libraries we are compared with.
    "error_code": st.integers(-1, 133),
    "topic_config_error_code": st.integers(-1, 133),
    "partition_error_code": st.integers(-1, 133),
    "transaction_start_time_ms": st.integers(0, 4_000_000_000_000),
    "log_append_time_ms": st.just(-1) | st.integers(0, 4_000_000_000_000),
    "retention_time_ms": st.integers(-1, 1 << 40),
    "session_lifetime_ms": st.integers(0, 1 << 40),
}
"""By field name, for fields whose values must be of a certain sort."""


class Direction:
    """The requests or the responses of one API, in all versions."""

    def __init__(self, api: AnyApi, name: str) -> None:
        self.api, self.name = api, name
        self.message: type[Message] = api.request if name == "request" else api.response

    def __str__(self) -> str:
        return f"{self.api.name}-{self.name}"

    def encode(self, version: int, message: Message) -> bytes:
        encode = self.api.encode_request if self.name == "request" else self.api.encode_response
        return b"".join(encode(version, message))

    def decode(self, version: int, encoded: bytes, *, before: bytes = b"", after: bytes = b"") -> Message:
        """Decodes from the middle of a larger buffer, as a connection does."""
        decode = self.api.decode_request if self.name == "request" else self.api.decode_response
        buffer = memoryview(before + encoded + after)
        message: Message = decode(version, buffer, len(before), len(before) + len(encoded))
        return message


def directions_in(package: ModuleType) -> list[Direction]:
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    return [
        Direction(module.API, name)
        for module in modules
        if hasattr(module, "API")  # a structure that several messages share has none
        for name in ("request", "response")
    ]


_SERVED: Final = directions_in(messages)
DIRECTIONS: Final = [direction for direction in _SERVED if direction.api.key < OWN_KEY_FIRST]
"""Kafka's own."""

OWN_DIRECTIONS: Final = [direction for direction in _SERVED if direction.api.key >= OWN_KEY_FIRST]
"""Ours, that clients are served."""

PEER_DIRECTIONS: Final = directions_in(peer)
"""Ours, between nodes."""

for_every_direction_of_kafka: Final = pytest.mark.parametrize("direction", DIRECTIONS, ids=str)
for_every_direction: Final = pytest.mark.parametrize(
    "direction", [*DIRECTIONS, *OWN_DIRECTIONS, *PEER_DIRECTIONS], ids=str
)


def examples(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@cache
def messages_of(message: type[Message]) -> st.SearchStrategy[Message]:
    """Messages with a value in every field."""
    values: dict[str, st.SearchStrategy[Any]] = {}
    for field in fields_of(message):
        strategy = SPECIAL[field.name] if field.name in SPECIAL else _values(field.kind)
        if field.nullable(VERSION_LAST):
            strategy = st.none() | strategy
        if is_ours(field):
            strategy = st.just(field.default)
        elif field.tag is not None:
            strategy = st.just(field.default) | strategy
        values[field.name] = strategy
    # `builds` would inspect the signature every time.
    return st.tuples(*values.values()).map(lambda drawn: message(**dict(zip(values, drawn, strict=True))))


def is_ours(field: Field) -> bool:
    """Whether Kafka does not have the field, so that nobody we are compared with would know it."""
    return field.tag is not None and field.tag >= OWN_TAG_FIRST


def as_of(message: Message, version: int) -> Message:
    """The message as `version` can carry it: its own fields, others at their defaults, null only where it may be."""
    values: dict[str, object] = {}
    for field in fields_of(type(message)):
        if not field.exists(version):
            continue
        value = getattr(message, field.name)
        if value is None and not field.nullable(version):
            value = "" if isinstance(field.kind, Text) else ()
        values[field.name] = _value_as_of(value, version)
    return type(message)(**values)


def _value_as_of(value: object, version: int) -> object:
    match value:
        case Message():
            return as_of(value, version)
        case tuple():
            return tuple(_value_as_of(element, version) for element in value)
        case _:
            return value


# Lengths of 127 and more take two bytes in flexible versions.
_TEXTS: Final = st.text(max_size=5) | st.sampled_from(["x" * 126, "x" * 127, "é" * 100])
_BLOBS: Final = st.binary(max_size=5) | st.sampled_from([bytes(126), bytes(127), bytes(40_000)])


def _values(kind: Kind) -> st.SearchStrategy[Any]:
    match kind:
        case Fixed("?"):
            return st.booleans()
        case Fixed("d"):
            return st.floats(allow_nan=False, allow_infinity=False)
        case Fixed("16s"):
            return st.sampled_from([bytes(16), bytes(range(16)), bytes(range(240, 256))])
        case Fixed(code):
            return _integers(code)
        case Text():
            return _TEXTS
        case Blob() | RecordSet():
            return _BLOBS
        case Structure(message):
            return messages_of(message)
        case Array(element):
            return st.lists(_values(element), max_size=2).map(tuple)


def _integers(code: str) -> st.SearchStrategy[int]:
    bits = struct.calcsize(">" + code) * 8
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if code.islower() else (0, (1 << bits) - 1)
    return st.integers(low, high)
