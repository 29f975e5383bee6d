"""A structure behind its version number, as keys and values of records about groups begin."""

from collections.abc import Callable
from struct import error as layout_error
from typing import Generic, TypeVar

from ropewalk.base.errors import InvalidRecord, ProtocolError
from ropewalk.wire.compile import compile_decoder, compile_encoder
from ropewalk.wire.types import Buffer, Message

M = TypeVar("M", bound=Message)


class Versioned(Generic[M]):
    """The compiled codecs are kept."""

    def __init__(self, message: type[M], *, versions: range, flexible_since: int, written: int) -> None:
        self._message = message
        self._versions = versions
        self._flexible_since = flexible_since
        self.written = written
        self._prefix = written.to_bytes(2, "big")
        self._encode = compile_encoder(message, written, flexible=written >= flexible_since)
        self._decoders: dict[int, Callable[[memoryview, int, int], M]] = {}

    def encode(self, message: M) -> bytes:
        chunks: list[Buffer] = [self._prefix, *self._encode(message)]
        return b"".join(chunks)

    def decode(self, data: Buffer) -> M:
        """Raises `InvalidRecord`."""
        view = memoryview(data)
        try:
            version = int.from_bytes(view[:2], "big", signed=True)
            if version not in self._versions:
                raise InvalidRecord(f"{self._message.__name__} v{version} is not known")
            decode = self._decoders.get(version)
            if decode is None:
                flexible = version >= self._flexible_since
                decode = self._decoders[version] = compile_decoder(self._message, version, flexible=flexible)
            return decode(view, 2, len(view))
        except (ProtocolError, layout_error, IndexError, UnicodeDecodeError) as problem:
            raise InvalidRecord(f"{self._message.__name__} is cut short or garbled") from problem
