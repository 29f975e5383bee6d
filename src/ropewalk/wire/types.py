"""The vocabulary of message classes: wire types, and what an annotation may say about versions.

    class HeartbeatRequest(Message, frozen=True):
        group_id: str
        generation_id: Int32
        member_id: str
        instance_id: Annotated[str | None, since(3)] = None

Fields are written in wire order. Plain Python types stand for themselves: `bool`, `str`, `bytes`, another
`Message`, `tuple[X, ...]` for an array, `X | None` for what may be null. Numbers name their width.
A field that some version does not carry has a default: it is what a decoder gives for such a version, and
an encoder for such a version leaves the field out silently, whatever its value.
"""

from typing import Annotated, Final, TypeAlias

from msgspec import Struct

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes in any of the shapes that can be sent without a copy."""

UUID_ZERO: Final = bytes(16)
"""Kafka's way to say that there is no such identifier."""


OWN_TAG_FIRST: Final = 10_000
"""Tags from here on are ours. Kafka numbers its own from 0, and whoever does not know a tag skips it."""

VERSION_LAST: Final = 0x7FFF
"""The largest version that a request header can name."""


class Message(Struct, frozen=True, gc=False):
    """The base of every message and every structure within one."""


class Fixed(Struct, frozen=True):
    """A value of known width; `code` is its letter in the `struct` module."""

    code: str


class RecordSet(Struct, frozen=True):
    """Marks record batches: bytes that pass through as they are."""


class Versions(Struct, frozen=True):
    """The versions that carry a field, both ends included."""

    first: int = 0
    last: int = VERSION_LAST


class Tagged(Struct, frozen=True):
    """Carried in the tagged section, and only when the value differs from the default."""

    tag: int


class NullableSince(Struct, frozen=True):
    """The first version that can say null; without this mark `X | None` can be null in all."""

    version: int


def since(version: int, until: int = VERSION_LAST) -> Versions:
    """The field exists from `version` on, up to and including `until`."""
    return Versions(first=version, last=until)


def until(version: int) -> Versions:
    """`version` is the last one that has the field."""
    return Versions(last=version)


def tagged(tag: int) -> Tagged:
    """The field travels in the tagged section under this number; combine with `since`."""
    return Tagged(tag)


def nullable(*, since: int) -> NullableSince:
    """Older versions have the field but cannot say null."""
    return NullableSince(since)


Int8 = Annotated[int, Fixed("b")]
Int16 = Annotated[int, Fixed("h")]
Int32 = Annotated[int, Fixed("i")]
Int64 = Annotated[int, Fixed("q")]
UInt16 = Annotated[int, Fixed("H")]
UInt32 = Annotated[int, Fixed("I")]
Float64 = Annotated[float, Fixed("d")]
Uuid = Annotated[bytes, Fixed("16s")]
Records = Annotated[Buffer | None, RecordSet()]
"""Record batches. Decoded they are a `memoryview` of the frame; whoever keeps them keeps the frame."""
