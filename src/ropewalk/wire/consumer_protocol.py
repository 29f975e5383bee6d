"""What members of protocol type "consumer" say to each other through the group's coordinator.

A broker passes these bytes on unread, but for groups whose assignments it makes itself; whoever shows a group to a person reads them here, too. They are laid out as
Kafka's messages are, each behind an INT16 that says its version:

v1  owned_partitions, for cooperative rebalancing
v2  generation_id, so that a leader can tell stale ownership
v3  rack_id

What a reader could get wrong
    A version newer than ours begins with the fields we know: it is read as our newest, as Kafka's clients do.
    Other assignors and other clients write what they like, so bytes that cannot be read are no error: None.
"""

from functools import cache
from struct import error as layout_error
from typing import Annotated, Final, TypeVar

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import REQUEST_ELEMENTS_MAX
from ropewalk.wire.compile import Decoder, Encoder, compile_decoder, compile_encoder
from ropewalk.wire.types import Int32, Message, since

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
VERSION_MAX: Final = 3

_VERSION_BYTES: Final = 2

M = TypeVar("M", bound=Message)


class TopicPartitions(Message, frozen=True):
    topic: str
    partitions: tuple[Int32, ...]


class Subscription(Message, frozen=True):
    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: Annotated[tuple[TopicPartitions, ...], since(1)] = ()
    generation_id: Annotated[Int32, since(2)] = -1
    rack_id: Annotated[str | None, since(3)] = None


class Assignment(Message, frozen=True):
    assigned_partitions: tuple[TopicPartitions, ...]
    user_data: bytes | None = None


class StickyPast(Message, frozen=True):
    """What members of the eager sticky assignor send as `user_data`, behind no version."""

    previous_assignment: tuple[TopicPartitions, ...]
    generation: Int32 = -1


def decode_sticky_past(data: bytes | None) -> StickyPast | None:
    if not data:
        return None
    try:
        past: StickyPast = _decoder(StickyPast, 0)(memoryview(data), 0, len(data))
    except (UnicodeDecodeError, layout_error, IndexError, ProtocolError):
        return None
    return past


def encode_sticky_past(past: StickyPast) -> bytes:
    return b"".join(_encoder(StickyPast, 0)(past))


def decode_subscription(data: bytes) -> Subscription | None:
    return _decode(Subscription, data)


def decode_assignment(data: bytes) -> Assignment | None:
    """None also for the empty bytes of a member that has been assigned nothing yet."""
    return _decode(Assignment, data)


def encode(message: Subscription | Assignment, version: int) -> bytes:
    assert 0 <= version <= VERSION_MAX
    return b"".join([version.to_bytes(_VERSION_BYTES, "big"), *_encoder(type(message), version)(message)])


def _decode(kind: type[M], data: bytes) -> M | None:
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if len(data) < _VERSION_BYTES or version < 0:
        return None
    decode = _decoder(kind, min(version, VERSION_MAX))
    try:
        message: M = decode(memoryview(data), _VERSION_BYTES, len(data))
    except (UnicodeDecodeError, layout_error, IndexError, ProtocolError):
        return None
    return message


@cache
def _decoder(kind: type[M], version: int) -> Decoder[M]:
    return compile_decoder(kind, version, flexible=False, elements_max=REQUEST_ELEMENTS_MAX)


@cache
def _encoder(kind: type[M], version: int) -> Encoder[M]:
    return compile_encoder(kind, version, flexible=False)
