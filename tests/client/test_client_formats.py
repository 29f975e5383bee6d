"""Values to bytes and back: every format, and what each refuses."""

from typing import Any

import msgspec
import pytest
from google.protobuf.wrappers_pb2 import Int64Value, StringValue

from ropewalk.client.errors import NotOfFormat
from ropewalk.client.formats import Avro, Format, Json, Protobuf, Text


class Order(msgspec.Struct):
    customer: str
    amount: int


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "customer", "type": "string"}, {"name": "amount", "type": "long"}],
}


@pytest.mark.parametrize(
    ("format_", "value", "encoded"),
    [
        pytest.param(Text(), "añb", "añb".encode(), id="text"),
        pytest.param(Json(), {"a": [1, None]}, b'{"a":[1,null]}', id="json"),
        pytest.param(Json(Order), Order("ada", 7), b'{"customer":"ada","amount":7}', id="json of a type"),
        pytest.param(Avro(AVRO), {"customer": "ada", "amount": 7}, b"\x06ada\x0e", id="avro"),
        pytest.param(Protobuf(StringValue), StringValue(value="ada"), b"\x0a\x03ada", id="protobuf"),
    ],
)
def test_what_is_written_is_read(format_: Format, value: Any, encoded: bytes) -> None:
    assert format_.encode(value) == encoded
    assert format_.decode(encoded) == value


@pytest.mark.parametrize(
    ("format_", "value"),
    [
        pytest.param(Text(), 7, id="a number as text"),
        pytest.param(Text(), "\ud800", id="half a character"),
        pytest.param(Json(), object(), id="an object as json"),
        pytest.param(Avro(AVRO), {"customer": "ada"}, id="avro without a field"),
        pytest.param(Protobuf(StringValue), Int64Value(value=1), id="another message"),
    ],
)
def test_what_cannot_be_written_is_refused(format_: Format, value: Any) -> None:
    with pytest.raises(NotOfFormat):
        format_.encode(value)


@pytest.mark.parametrize(
    ("format_", "data"),
    [
        pytest.param(Text(), b"\xff", id="not utf-8"),
        pytest.param(Json(), b"{", id="half of json"),
        pytest.param(Json(Order), b'{"customer":"ada","amount":"many"}', id="json of another type"),
        pytest.param(Avro(AVRO), b"\x06ad", id="half of avro"),
        pytest.param(Avro(AVRO), b"\x06ada\x0e\x00", id="more than avro"),
        pytest.param(Protobuf(StringValue), b"\x0a\x09ada", id="half of protobuf"),
    ],
)
def test_what_cannot_be_read_is_refused(format_: Format, data: bytes) -> None:
    with pytest.raises(NotOfFormat):
        format_.decode(data)
