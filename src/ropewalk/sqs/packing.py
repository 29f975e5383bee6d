"""A message as a record, and back: the body is the value, the group the key, and everything else is in headers.

    name                 a String attribute of that name; other attributes are there as well, with
    sqs.type.name        their type, where it is not String
    sqs.as.name          an attribute whose own name begins as the headers of leaders and doors do
    sqs.sender           the access key of who sent it
    sqs.trace            AWSTraceHeader
    rw.…                 what leaders read (`broker/queues/headers.py`)

What a reader could get wrong
    Kafka producers write records, too. A header of theirs is a String attribute where it is text, a Binary one where it is not, and none where SQS could
    not name it. A value that is no text, or has characters that SQS forbids, arrives in base64, with an attribute that says so.
"""

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from ropewalk.base.limits import SQS_SENDERS_KEPT_MAX
from ropewalk.broker.queues.headers import DEDUPLICATION_ID, DELAY_MS, MESSAGE_ID, RECEIVE_COUNT, SOURCE_QUEUE
from ropewalk.queues.messages import Outgoing
from ropewalk.records.packing import Headers
from ropewalk.records.record import Record
from ropewalk.sqs.message_ids import is_id
from ropewalk.sqs.messages import (
    AttributeValue,
    AttributeValues,
    content_of,
    is_attribute_name,
    is_text,
    is_text_in_utf8,
)

TYPE: Final = "sqs.type."
ESCAPED: Final = "sqs.as."
SENDER: Final = "sqs.sender"
TRACE: Final = "sqs.trace"
_RESERVED: Final = ("sqs.", "rw.")

ENCODING: Final = "ropewalk.encoding"
"""The attribute of a message whose body could not be given as it is."""
BASE64: Final = AttributeValue(string_value="base64", data_type="String")

STRING: Final = "String"
BINARY: Final = "Binary"
_COUNT_DIGITS_MAX: Final = 9


class Said(Struct, frozen=True):
    """What the headers of a record say. Most messages of one sender have the same headers, so it is kept for the next of them."""

    attributes: Mapping[str, AttributeValue]
    deduplication_id: str = ""
    sender: str = ""
    trace: str = ""
    message_id: bytes = b""
    """Of a message that was moved: the one it had; else empty."""
    source: str = ""
    """Of a dead letter: the name of the queue that it comes from."""
    received_before: int = 0
    """Of a message that was moved: how often."""


class Content(Struct, frozen=True):
    """What a record's value says."""

    body: str
    value: bytes
    """The body in UTF-8."""
    is_encoded: bool
    """In base64, since it could not be given as it is."""


def pack(
    body: bytes,
    *,
    attributes: AttributeValues | None,
    trace: str | None,
    sender: str,
    group: str,
    deduplication_id: str,
    delay_ms: int,
    is_fifo: bool,
    now_ms: int,
) -> Outgoing:
    """A deduplication id is kept on every queue, and means something on a FIFO queue."""
    headers: list[tuple[str, bytes | None]] = []
    if attributes:
        _pack_attributes(attributes, headers)
    headers += headers_of_sender(sender)
    if trace:
        headers.append((TRACE, trace.encode()))
    if delay_ms:
        headers.append((DELAY_MS, b"%d" % delay_ms))
    if deduplication_id:
        headers.append((DEDUPLICATION_ID, deduplication_id.encode()))
    return Outgoing(
        body=body,
        headers=tuple(headers),
        sent_at_ms=now_ms,
        group=group,
        deduplication_id=deduplication_id if is_fifo else "",
        delay_ms=delay_ms,
    )


@lru_cache(maxsize=SQS_SENDERS_KEPT_MAX)
def headers_of_sender(sender: str) -> Headers:
    """Those of a message that says nothing but its body: the very same for all of a sender."""
    return ((SENDER, sender.encode()),) if sender else ()


def content_of_record(record: Record) -> Content:
    value = record.value or b""
    if is_text_in_utf8(value):
        try:
            return Content(value.decode(), value, False)
        except UnicodeDecodeError:
            pass
    value = b64encode(value)
    return Content(value.decode(), value, True)


def group_of(record: Record) -> str:
    return _text(record.key) if record.key else ""


def said_by(headers: Headers) -> Said:
    if not headers:
        return _NOTHING
    own, attributes = _unpack_headers(headers)
    message_id = own.get(MESSAGE_ID, b"")
    count = own.get(RECEIVE_COUNT, b"")
    return Said(
        attributes,
        _text(own.get(DEDUPLICATION_ID, b"")),
        _text(own.get(SENDER, b"")),
        _text(own.get(TRACE, b"")),
        message_id if is_id(message_id) else b"",
        _text(own.get(SOURCE_QUEUE, b"")),
        int(count) if count.isdigit() and len(count) <= _COUNT_DIGITS_MAX else 0,
    )


def attributes_of(content: Content, said: Said) -> Mapping[str, AttributeValue]:
    return {**said.attributes, ENCODING: BASE64} if content.is_encoded else said.attributes


_NOTHING: Final = Said({})


def _pack_attributes(attributes: AttributeValues, headers: list[tuple[str, bytes | None]]) -> None:
    for name, value in attributes.items():
        content = content_of(value)
        encoded = content if isinstance(content, bytes) else content.encode()
        headers.append((ESCAPED + name if name.startswith(_RESERVED) else name, encoded))
        if value.data_type != STRING:
            headers.append((TYPE + name, value.data_type.encode()))


def _unpack_headers(headers: Headers) -> tuple[dict[str, bytes], dict[str, AttributeValue]]:
    own: dict[str, bytes] = {}
    contents: dict[str, bytes] = {}
    types: dict[str, str] = {}
    for name, content in headers:
        if not name.startswith(_RESERVED):
            contents[name] = content or b""
        elif name.startswith(ESCAPED):
            contents[name.removeprefix(ESCAPED)] = content or b""
        elif name.startswith(TYPE):
            types[name.removeprefix(TYPE)] = _text(content or b"")
        else:
            own[name] = content or b""
    attributes = {
        name: _attribute(content, types.get(name, ""))
        for name, content in contents.items()
        if is_attribute_name(name)
    }
    return own, attributes


def _attribute(content: bytes, data_type: str) -> AttributeValue:
    base = data_type.partition(".")[0]
    if base == BINARY:
        return AttributeValue(binary_value=content, data_type=data_type)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return AttributeValue(binary_value=content, data_type=BINARY)
    if not is_text(text):
        return AttributeValue(binary_value=content, data_type=BINARY)
    return AttributeValue(string_value=text, data_type=data_type if base in (STRING, "Number") else STRING)


def _text(content: bytes) -> str:
    """Of something that is text, where nobody played with it."""
    if not content:
        return ""
    text = content.decode(errors="replace")
    return (
        text
        if is_text(text)
        else "".join(character if is_text(character) else "\ufffd" for character in text)
    )
