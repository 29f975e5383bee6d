"""The codecs: round trips, the dresses of snappy and lz4, truncation, noise and bombs."""

import zlib

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import CorruptBatch
from ropewalk.records.codec import Codec
from ropewalk.records.compression import compress, decompress

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
contents = st.one_of(
    st.binary(max_size=300),
    st.builds(lambda unit, n: unit * n, st.binary(min_size=1, max_size=9), st.integers(1, 20_000)),
)


@given(st.sampled_from(Codec), contents)
def test_what_is_compressed_opens_to_itself_and_not_beyond_its_size(codec: Codec, data: bytes) -> None:
    stored = compress(codec, memoryview(data))
    assert decompress(codec, memoryview(bytearray(stored)), bytes_max=len(data)) == data
    if data:
        with pytest.raises(CorruptBatch):
            decompress(codec, stored, bytes_max=len(data) - 1)


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("level", [1, 6, 9])
def test_levels_are_taken(codec: Codec, level: int) -> None:
    data = bytes(range(256)) * 50
    assert decompress(codec, compress(codec, data, level), bytes_max=len(data)) == data


def test_levels_matter() -> None:
    data = b"".join(str(number * number).encode() for number in range(20_000))
    for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD):
        assert compress(codec, data, 9) != compress(codec, data, 1), codec


@given(st.sampled_from(COMPRESSED), st.binary(min_size=1, max_size=200), st.data())
def test_a_truncated_frame_never_opens_to_something_else(
    codec: Codec, data: bytes, draw: st.DataObject
) -> None:
    stored = compress(codec, data)
    cut = draw.draw(st.integers(0, len(stored) - 1))
    try:
        opened = decompress(codec, stored[:cut], bytes_max=1 << 16)
    except CorruptBatch:
        return
    # Blocks of snappy stand side by side without an end mark: before the first is an empty stream.
    assert codec is Codec.SNAPPY
    assert opened == b""


@given(st.sampled_from(COMPRESSED), st.binary(max_size=400))
def test_noise_is_corrupt_or_opens_within_the_bound(codec: Codec, noise: bytes) -> None:
    try:
        opened = decompress(codec, noise, bytes_max=1000)
    except CorruptBatch:
        return
    assert len(opened) <= 1000


@given(st.sampled_from(COMPRESSED), st.binary(max_size=400), st.data())
def test_a_changed_frame_is_corrupt_or_opens_within_the_bound(
    codec: Codec, data: bytes, draw: st.DataObject
) -> None:
    stored = bytearray(compress(codec, data))
    stored[draw.draw(st.integers(0, len(stored) - 1))] ^= draw.draw(st.integers(1, 255))
    try:
        opened = decompress(codec, stored, bytes_max=1000)
    except CorruptBatch:
        return
    assert len(opened) <= 1000


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_refused(codec: Codec) -> None:
    bomb = compress(codec, bytes(1 << 24))
    with pytest.raises(CorruptBatch, match="more than the 65536 bytes allowed"):
        decompress(codec, bomb, bytes_max=1 << 16)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_bytes_after_the_frame_are_refused(codec: Codec) -> None:
    with pytest.raises(CorruptBatch, match="follow"):
        decompress(codec, compress(codec, b"data") + b"more", bytes_max=100)


def test_snappy_is_written_in_blocks_with_xerial_framing() -> None:
    stored = compress(Codec.SNAPPY, bytes(70_000))
    assert stored[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    sizes, position = [], 16
    while position < len(stored):
        size = int.from_bytes(stored[position : position + 4], "big")
        sizes.append(cramjam.snappy.decompress_raw_len(stored[position + 4 : position + 4 + size]))
        position += 4 + size
    assert sizes == [32_768, 32_768, 4_464]


def test_bare_snappy_is_read_as_librdkafka_sends_it() -> None:
    bare = bytes(cramjam.snappy.compress_raw(b"bare" * 100))
    assert decompress(Codec.SNAPPY, bare, bytes_max=400) == b"bare" * 100


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"\xff\xff\xff\xff", id="negative size"),
        pytest.param(b"\x00\x00\x00\x00", id="empty block"),
        pytest.param(b"\x00\x00\x00\x09ab", id="beyond the end"),
        pytest.param(b"\x00\x00", id="half a size"),
    ],
)
def test_snappy_blocks_that_do_not_fit_are_corrupt(block: bytes) -> None:
    with pytest.raises(CorruptBatch):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"") + block, bytes_max=100)


def test_a_bare_snappy_block_that_claims_four_gibibytes_costs_nothing() -> None:
    with pytest.raises(CorruptBatch, match="more than"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(20), bytes_max=1 << 20)


def test_lz4_frames_have_independent_blocks() -> None:
    assert lz4.frame.get_frame_info(compress(Codec.LZ4, bytes(200_000)))["block_linked"] is False


def test_gzip_is_the_container_and_not_bare_deflate() -> None:
    assert zlib.decompress(compress(Codec.GZIP, b"data"), wbits=31) == b"data"
