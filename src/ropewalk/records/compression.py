"""Compress and decompress what a batch holds, in the four codecs of Kafka.

What a reader could get wrong
    Snappy has two dresses. Java wraps blocks of 32 KiB in xerial's framing, librdkafka sends one bare block;
    both are read, the framed one is written, since every client reads it.
    LZ4 frames are written with independent blocks: Java clients refuse linked ones.
    Whatever a client compressed, it is opened under a bound on the size it opens to. One frame is all a
    batch may hold: bytes after it are refused, as they are in no client's output.
"""

import sys
import zlib
from collections.abc import Callable
from typing import Final

import cramjam
import lz4.frame
from typing_extensions import Buffer

from ropewalk.base.errors import CorruptBatch
from ropewalk.records.codec import Codec

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["Codec", "compress", "decompress"]

_GZIP_CONTAINER: Final = 16 + zlib.MAX_WBITS
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
_XERIAL_BLOCK_BYTES: Final = 32 * 1024


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`level` is the codec's own; None takes its default, and snappy has none to choose."""
    if codec is Codec.NONE:
        return bytes(memoryview(data))
    return _COMPRESS[codec](data, level)


def decompress(codec: Codec, data: Buffer, *, bytes_max: int) -> bytes:
    """Refuses bytes that are not one whole frame of the codec, or open to more than `bytes_max`, with `CorruptBatch`."""
    view = memoryview(data)
    if codec is Codec.NONE:
        _check_size(view.nbytes, codec, bytes_max)
        return bytes(view)
    try:
        return _DECOMPRESS[codec](view, bytes_max)
    except (zlib.error, zstd.ZstdError, cramjam.DecompressionError, RuntimeError, EOFError) as error:
        # lz4 has no error of its own: it raises RuntimeError for every way a frame can be wrong.
        raise CorruptBatch(f"{codec.name.lower()} data cannot be opened: {error}") from None


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    compressor = zlib.compressobj(
        zlib.Z_DEFAULT_COMPRESSION if level is None else level, wbits=_GZIP_CONTAINER
    )
    return compressor.compress(data) + compressor.flush()


def _compress_snappy(data: Buffer, level: int | None) -> bytes:
    del level
    view = memoryview(data)
    output = bytearray(_XERIAL_HEADER)
    for start in range(0, view.nbytes, _XERIAL_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES])
        output += len(block).to_bytes(4, "big")
        output += block
    return bytes(output)


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    compressed: bytes = lz4.frame.compress(
        data, compression_level=0 if level is None else level, block_linked=False, store_size=False
    )
    return compressed


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    compressed: bytes = zstd.compress(data, level=level)
    return compressed


def _decompress_gzip(data: memoryview, bytes_max: int) -> bytes:
    decompressor = zlib.decompressobj(wbits=_GZIP_CONTAINER)
    output = decompressor.decompress(data, bytes_max + 1)
    return _whole_frame(output, Codec.GZIP, bytes_max, decompressor.eof, decompressor.unused_data)


def _decompress_lz4(data: memoryview, bytes_max: int) -> bytes:
    decompressor = lz4.frame.LZ4FrameDecompressor()
    output = decompressor.decompress(data, max_length=bytes_max + 1)
    return _whole_frame(output, Codec.LZ4, bytes_max, decompressor.eof, decompressor.unused_data)


def _decompress_zstd(data: memoryview, bytes_max: int) -> bytes:
    decompressor = zstd.ZstdDecompressor()
    output = decompressor.decompress(data, max_length=bytes_max + 1)
    return _whole_frame(output, Codec.ZSTD, bytes_max, decompressor.eof, decompressor.unused_data)


def _decompress_snappy(data: memoryview, bytes_max: int) -> bytes:
    """A block announces its size, and the decoder writes no byte beyond what was announced."""
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        _check_size(cramjam.snappy.decompress_raw_len(data), Codec.SNAPPY, bytes_max)
        return bytes(cramjam.snappy.decompress_raw(data))
    position = len(_XERIAL_HEADER)
    if len(data) < position:
        raise CorruptBatch(f"{len(data)} bytes are fewer than the {position} of a snappy stream's header")
    output = bytearray()
    while position < len(data):
        start = position + 4
        position = start + int.from_bytes(data[start - 4 : start], "big")
        if not start < position <= len(data):
            raise CorruptBatch(f"a snappy block ends at byte {position} of {len(data)}")
        block = data[start:position]
        _check_size(len(output) + cramjam.snappy.decompress_raw_len(block), Codec.SNAPPY, bytes_max)
        output += cramjam.snappy.decompress_raw(block)
    return bytes(output)


def _whole_frame(output: bytes, codec: Codec, bytes_max: int, ended: bool, unused: bytes | None) -> bytes:
    _check_size(len(output), codec, bytes_max)
    if not ended:
        raise CorruptBatch(f"{codec.name.lower()} data ends in the middle of its frame")
    if unused:
        raise CorruptBatch(f"{len(unused)} bytes follow the {codec.name.lower()} frame")
    return output


def _check_size(size: int, codec: Codec, bytes_max: int) -> None:
    if size > bytes_max:
        raise CorruptBatch(f"{codec.name.lower()} data opens to more than the {bytes_max} bytes allowed")


_COMPRESS: Final[dict[Codec, Callable[[Buffer, int | None], bytes]]] = {
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}

_DECOMPRESS: Final[dict[Codec, Callable[[memoryview, int], bytes]]] = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
