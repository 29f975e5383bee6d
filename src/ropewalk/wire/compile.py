"""Turns a message class into straight-line Python, once per version.

For every (class, version) two functions are written as source and compiled at first use: nested structures are
unrolled into one function, adjacent fields of known width become one `struct.Struct`, and the length in front of
a string or an array is packed and unpacked together with the fields before it. `source_of` shows what was written.

`Api` turns what `struct` and indexing raise inside a decoder into `ProtocolError`; whoever calls a compiled decoder
bare must do so too.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from ropewalk.wire.decoder_writer import DecoderWriter
from ropewalk.wire.encoder_writer import EncoderWriter
from ropewalk.wire.errors_writer import ErrorsWriter
from ropewalk.wire.types import Buffer, Message

M = TypeVar("M", bound=Message)

Decoder: TypeAlias = Callable[[memoryview, int, int], M]
"""(buffer, position, end) to the message those bytes begin with."""

Encoder: TypeAlias = Callable[[M], list[Buffer]]
"""A message to chunks, in order."""


def compile_decoder(
    message: type[M], version: int, *, flexible: bool, elements_max: int | None = None
) -> "Decoder[M]":
    writer = DecoderWriter(version, flexible=flexible, elements_max=elements_max)
    function: Decoder[M] = writer.compile(message)
    return function


def compile_encoder(message: type[M], version: int, *, flexible: bool) -> "Encoder[M]":
    function: Encoder[M] = EncoderWriter(version, flexible=flexible).compile(message)
    return function


def compile_errors_of(message: type[M]) -> "Callable[[M], list[int]]":
    """A function that finds the error codes in an answer of this class."""
    function: Callable[[M], list[int]] = ErrorsWriter(0, flexible=False).compile(message)
    return function


def source_of(message: type[Message], version: int, *, flexible: bool) -> str:
    """The Python of both functions, for reading and for debugging."""
    decoder, encoder = DecoderWriter(version, flexible=flexible), EncoderWriter(version, flexible=flexible)
    return f"{decoder.source(message)}\n\n{encoder.source(message)}"
