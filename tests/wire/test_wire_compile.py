"""The compiler on shapes that no API at hand has, but the next one may."""

import traceback
from typing import Annotated

import pytest

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.compile import compile_decoder, compile_encoder, source_of
from ropewalk.wire.types import (
    Float64,
    Int8,
    Int64,
    Message,
    UInt16,
    UInt32,
    Uuid,
    nullable,
    since,
    tagged,
    until,
)


class Hollow(Message, frozen=True):
    """Has nothing to say before version 5."""

    late: Annotated[Int8, since(5)] = 0


class Shapes(Message, frozen=True):
    booleans: tuple[bool, ...]
    identifiers: tuple[Uuid, ...]
    blobs: tuple[bytes, ...]
    hollows: tuple[Hollow, ...]
    unsigned: UInt16
    wide: UInt32
    real: Float64
    maybe_blob: Annotated[bytes | None, nullable(since=2)]
    early: Annotated[Int64, until(1)] = -7
    between: Annotated[str, since(1, until=2)] = "between"
    grid: tuple[tuple[Int8, ...], ...] = ()


class Tagged(Message, frozen=True):
    second: Annotated[str | None, tagged(200)] = None
    first: Annotated[tuple[Int8, ...], tagged(3)] = ()
    hollow: Annotated[Hollow, tagged(0)] = Hollow()


SHAPES = Shapes(
    booleans=(True, False),
    identifiers=(bytes(16), bytes(range(16))),
    blobs=(b"", b"blob"),
    hollows=(Hollow(), Hollow(), Hollow()),
    unsigned=0xFFFF,
    wide=0xFFFFFFFF,
    real=-0.5,
    maybe_blob=b"x",
    grid=((), (1, -1)),
)


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("version", range(4))
def test_every_shape_survives(version: int, flexible: bool) -> None:
    encoded = b"".join(compile_encoder(Shapes, version, flexible=flexible)(SHAPES))
    decoded = compile_decoder(Shapes, version, flexible=flexible)(memoryview(encoded), 0, len(encoded))
    assert decoded == SHAPES


def test_elements_without_bytes_do_not_come_free() -> None:
    decode = compile_decoder(Shapes, 0, flexible=False)
    frame = bytes(12) + b"\x7f\xff\xff\xff" + bytes(64)
    with pytest.raises(ProtocolError, match="hollows announces 2147483647 elements with 64 bytes left"):
        decode(memoryview(frame), 0, len(frame))


def test_tags_are_written_in_the_order_of_their_numbers() -> None:
    message = Tagged(second="s", first=(9,), hollow=Hollow(1))
    encoded = b"".join(compile_encoder(Tagged, 5, flexible=True)(message))
    assert encoded.hex(" ") == "03 00 02 01 00 03 02 02 09 c8 01 02 02 73"
    assert compile_decoder(Tagged, 5, flexible=True)(memoryview(encoded), 0, len(encoded)) == message


def test_a_default_is_not_written_even_if_it_is_another_object() -> None:
    assert compile_encoder(Tagged, 5, flexible=True)(Tagged(hollow=Hollow(0))) == [b"\0"]


def test_unknown_tags_beside_known_ones_are_skipped() -> None:
    encoded = bytes.fromhex("03 01 02 abcd 03 02 02 09 7f 00")
    decoded = compile_decoder(Tagged, 5, flexible=True)(memoryview(encoded), 0, len(encoded))
    assert decoded == Tagged(first=(9,))


def test_an_identifier_of_the_wrong_length_is_our_own_mistake() -> None:
    wrong = Shapes((), (b"short",), (), (), 0, 0, 0.0, b"")
    with pytest.raises(AssertionError):
        compile_encoder(Shapes, 0, flexible=True)(wrong)


def test_a_traceback_shows_the_line_that_was_compiled() -> None:
    decode = compile_decoder(Shapes, 0, flexible=False)
    try:
        decode(memoryview(b""), 0, 0)
    except Exception as problem:  # noqa: BLE001 - which one it is belongs to `struct`
        shown = "".join(traceback.format_exception(problem))
    assert "<ropewalk.wire decode Shapes v0>" in shown
    assert "booleans_1_count, = unpack" in shown


def test_the_source_can_be_read() -> None:
    source = source_of(Shapes, 0, flexible=False)
    assert source.count("def ") == 2
    assert "unsigned_" in source
