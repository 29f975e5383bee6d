"""Messages on their way into a queue: what each is made of, typed attributes, and requests of ten messages or 1 MiB.

What a reader could get wrong
    A number of Python's becomes the type Number, bytes become Binary, everything else is text; and back. A type with a label of its own,
    such as Number.price, comes back as its base.
    One message that is too large by itself travels alone, so that its refusal takes no other with it.
"""

from base64 import b64decode, b64encode
from binascii import Error as _NotBase64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import QUEUE_CLIENT_BATCH_BYTES_MAX, QUEUE_CLIENT_BATCH_MAX
from ropewalk.client.errors import Misuse

AttributeValue = str | int | float | bytes
_NO_ATTRIBUTES: Final[Mapping[str, AttributeValue]] = {}


class Outgoing(Struct, frozen=True, kw_only=True):
    """A message that is to be sent."""

    body: str
    attributes: Mapping[str, AttributeValue] = _NO_ATTRIBUTES
    group: str | None = None
    """FIFO: the messages of a group keep their order. On other queues: whose it is, for a fair share."""
    deduplication_id: str | None = None
    """FIFO: of several with the same id within five minutes one is taken. None: the queue makes it of the body, if it was told to."""
    delay_s: int | None = None
    """None: as the queue has it."""


class Sent(Struct, frozen=True, gc=False):
    message_id: str
    sequence_number: str | None = None
    """FIFO."""


def fields_of(message: Outgoing) -> dict[str, object]:
    """As SendMessage and an entry of SendMessageBatch have them. Raises `Misuse`."""
    if not isinstance(message.body, str):
        raise Misuse(
            f"the body of a message is text, not {type(message.body).__name__}; bytes fit into an attribute"
        )
    fields: dict[str, object] = {"MessageBody": message.body}
    if message.attributes:
        fields["MessageAttributes"] = {
            name: _encoded(name, value) for name, value in message.attributes.items()
        }
    if message.group is not None:
        fields["MessageGroupId"] = message.group
    if message.deduplication_id is not None:
        fields["MessageDeduplicationId"] = message.deduplication_id
    if message.delay_s is not None:
        fields["DelaySeconds"] = message.delay_s
    return fields


def size_bytes(message: Outgoing) -> int:
    """As the API counts: the body, and names, types and values of attributes."""
    total = len(message.body.encode())
    for name, value in message.attributes.items():
        kind, text, data = _typed(name, value)
        total += len(name.encode()) + len(kind) + len(text.encode() if data is None else data)
    return total


def in_requests(messages: Sequence[Outgoing]) -> Iterator[range]:
    """Which messages travel together, in their order."""
    start, total = 0, 0
    for index, message in enumerate(messages):
        size = size_bytes(message)
        if index > start and (
            index - start == QUEUE_CLIENT_BATCH_MAX or total + size > QUEUE_CLIENT_BATCH_BYTES_MAX
        ):
            yield range(start, index)
            start, total = index, 0
        total += size
    if start < len(messages):
        yield range(start, len(messages))


def outgoing(messages: Iterable[str | Outgoing]) -> list[Outgoing]:
    return [Outgoing(body=each) if isinstance(each, str) else each for each in messages]


def decode_attributes(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, AttributeValue]:
    return {name: _decoded(name, value) for name, value in attributes.items()}


def _encoded(name: str, value: AttributeValue) -> dict[str, str]:
    kind, text, data = _typed(name, value)
    if data is not None:
        return {"DataType": kind, "BinaryValue": b64encode(data).decode()}
    return {"DataType": kind, "StringValue": text}


def _typed(name: str, value: AttributeValue) -> tuple[str, str, bytes | None]:
    """Type, text, and bytes where it is those."""
    match value:
        case bool():
            raise Misuse(f"attribute {name} is {value}; a truth is sent as a text or a number of your choice")
        case str():
            return ("String", value, None)
        case int() | float():
            return ("Number", str(value), None)
        case bytes():
            return ("Binary", "", value)
        case _:
            raise Misuse(f"attribute {name} is a {type(value).__name__}; there are texts, numbers and bytes")


def _decoded(name: str, value: Mapping[str, Any]) -> AttributeValue:
    kind = str(value.get("DataType", "String")).partition(".")[0]
    if kind == "Binary":
        try:
            return b64decode(value.get("BinaryValue", ""), validate=True)
        except (_NotBase64, TypeError) as error:
            raise ProtocolError(f"attribute {name} is not base64: {error}") from None
    text = str(value.get("StringValue", ""))
    if kind != "Number":
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
