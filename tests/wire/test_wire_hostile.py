"""Bytes that are not what they claim to be: a message or a `ProtocolError`, nothing else, and no memory for the asking."""

import tracemalloc

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.api import AnyApi
from ropewalk.wire.headers import decode_request_header
from ropewalk.wire.messages import (
    create_topics,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    join_group,
    metadata,
    produce,
)
from ropewalk.wire.types import Message
from ropewalk.wire.varint import encode_varint
from tests.wire.invented import Direction, as_of, examples, for_every_direction, messages_of


@for_every_direction
@examples(4)
@given(data=st.data())
def test_every_truncation_is_refused_and_a_surplus_ignored(direction: Direction, data: st.DataObject) -> None:
    message = data.draw(messages_of(direction.message))
    version = data.draw(st.sampled_from(direction.api.versions))
    encoded = direction.encode(version, as_of(message, version))
    for length in _some_lengths_below(len(encoded)):
        # What follows in the buffer is the next frame, not more of this one.
        for after in (b"", bytes(64), b"\xff" * 64):
            note(f"version {version}, {length} of {len(encoded)} bytes, then {after!r}")
            with pytest.raises(ProtocolError):
                direction.decode(version, encoded[:length], after=after)
    assert direction.decode(version, encoded + b"\0") == direction.decode(version, encoded)


_MANY = 300_000
_EVIL = st.sampled_from(
    [b"\0", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff" * 4, b"\xff" * 5, b"\x7f\xff\xff\xff", b"\x80\0\0\0"]
)


@for_every_direction
@examples(8)
@given(data=st.data())
def test_any_mutation_gives_a_message_or_a_protocol_error(direction: Direction, data: st.DataObject) -> None:
    message = data.draw(messages_of(direction.message))
    version = data.draw(st.sampled_from(direction.api.versions))
    encoded = bytearray(direction.encode(version, as_of(message, version)))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(encoded)))
        evil = data.draw(_EVIL | st.binary(min_size=1, max_size=6))
        encoded[position : position + data.draw(st.sampled_from([0, 1, len(evil)]))] = evil
    try:
        decoded = direction.decode(version, bytes(encoded), after=b"after")
    except ProtocolError:
        return
    assert isinstance(decoded, direction.message)
    # What came out is a message like any other: written and read again it stays as it is. Bytes are compared, because
    # a mutation may have made a number of a quota that is not equal to itself.
    written = direction.encode(version, decoded)
    assert direction.encode(version, direction.decode(version, written)) == written


@for_every_direction
@examples(4)
@given(noise=st.binary(max_size=200))
def test_noise_gives_a_message_or_a_protocol_error(direction: Direction, noise: bytes) -> None:
    for version in direction.api.versions:
        try:
            direction.decode(version, noise)
        except ProtocolError:
            continue


@pytest.mark.parametrize(
    ("asked", "encoded", "complaint"),
    [
        pytest.param((metadata.API, 1), "ffffffff", None, id="null where it may be"),
        pytest.param((metadata.API, 0), "ffffffff", "topics announces -1 elements", id="null where it may not be"),
        pytest.param((metadata.API, 1), "fffffffe", "topics announces -2 elements", id="negative count"),
        pytest.param((metadata.API, 1), "7fffffff", "topics announces 2147483647 elements with 0", id="huge count"),
        pytest.param((metadata.API, 1), "00000002 0001 61", "2 elements with 3 bytes left", id="one element too many"),
        pytest.param((metadata.API, 1), "00000001 ffff", "name has a length of -1", id="null string"),
        pytest.param((metadata.API, 1), "00000001 8000", "name has a length of -32768", id="negative string"),
        pytest.param((metadata.API, 1), "00000001 7fff 61", "after its frame", id="string past the end"),
        pytest.param((metadata.API, 1), "00000001 0002 c328", "not UTF-8", id="bad UTF-8"),
        pytest.param((metadata.API, 1), "00000001 0003 eda080", "not UTF-8", id="a surrogate in UTF-8"),
        pytest.param((metadata.API, 9), "ffffffff7f 01", "at most 2147483647", id="varint of 35 bits"),
        pytest.param((metadata.API, 9), "ffffffff08 01", "at most 2147483647", id="varint of 2**31 and more"),
        pytest.param((metadata.API, 9), "ffffffffff01", "more than five bytes", id="varint of six bytes"),
        pytest.param((metadata.API, 9), "ffffffff07", "elements with 0 bytes left", id="huge compact count"),
        pytest.param((metadata.API, 9), "80", "cut short", id="varint cut off"),
        pytest.param((metadata.API, 9), "02 818002" + "61" * 32768, "at most 32768", id="compact string too long for Kafka"),
        pytest.param((metadata.API, 9), "00 01 00 00 00", None, id="empty tagged section"),
        pytest.param((metadata.API, 9), "00 01 00 00 02 05 01 aa 63 00", None, id="unknown tags are skipped"),
        pytest.param((metadata.API, 9), "00 01 00 00 01 05 7f", "after its frame", id="unknown tag past the end"),
        pytest.param((metadata.API, 9), "00 01 00 00 ffffffff07", "more than 262144 elements", id="two thousand million tags"),
        pytest.param((join_group.API, 6), "01 00000000 00000000 01 00 01 02 01 ffffffff07 00 00", "cut short", id="huge bytes"),
        pytest.param((join_group.API, 6), "01 00000000 00000000 01 00 01 02 01 00 00 00", "metadata has a length of 0", id="null bytes"),
        pytest.param((fetch.API, 15), "01" * 21 + "01 01 01" + " 01 01 05" + "00" * 13, "tagged field 1 ends 8 bytes after", id="tag size too small"),
        pytest.param((describe_topic_partitions.API, 0), "01 00000001 ff 00", None, id="null structure"),
        pytest.param((describe_topic_partitions.API, 0), "01 00000001 80 00", None, id="any negative presence is null"),
        pytest.param((produce.API, 9), "00 0001 00000000 02 01 02 00000000 ffffffff07 00 00 00", "cut short", id="huge records"),
        pytest.param((produce.API, 3), "ffff 0001 00000000 00000001 0000 00000001 00000000 fffffffe", "records has a length of -2", id="negative records"),
    ],
)  # fmt: skip
def test_lengths(asked: tuple[AnyApi, int], encoded: str, complaint: str | None) -> None:
    api, version = asked
    frame = memoryview(bytes.fromhex(encoded))
    if complaint is None:
        api.decode_request(version, frame, 0, len(frame))
    else:
        with pytest.raises(ProtocolError, match=complaint):
            api.decode_request(version, frame, 0, len(frame))


@pytest.mark.parametrize(
    ("api", "version", "frame"),
    [
        pytest.param(metadata.API, 1, b"\x7f\xff\xff\xff" + bytes(40_000), id="more elements than bytes"),
        pytest.param(metadata.API, 1, b"\0\0\x4e\x20" + bytes(40_000), id="20,000 topics of two bytes"),
        pytest.param(find_coordinator.API, 6, b"\0" + encode_varint(40_000) + b"\1" * 40_000, id="40,000 empty strings"),
        pytest.param(describe_topic_partitions.API, 0, encode_varint(20_001) + b"\1\0" * 20_000, id="tiny structures"),
        pytest.param(create_topics.API, 7, encode_varint(3_000) + b"\1" * 40_000, id="nested, each with an unknown tag"),
        pytest.param(fetch.API, 7, bytes(25) + b"\0\0\x27\x10" + bytes(100_000), id="10,000 topics without partitions"),
        pytest.param(fetch.API, 12, bytes(25) + encode_varint(10_001) + b"\1\1\0" * 20_000, id="and compact ones"),
    ],
)  # fmt: skip
def test_memory_stays_within_a_small_multiple_of_the_frame(api: AnyApi, version: int, frame: bytes) -> None:
    direction = Direction(api, "request")
    _decode_or_refuse(direction, version, b"")  # compiles, outside the measurement
    tracemalloc.start()
    try:
        _decode_or_refuse(direction, version, frame)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 30 * len(frame)


_PRODUCE_START = b"\0\0\1" + bytes(4)  # no transaction, acks, no time


@pytest.mark.parametrize(
    ("api", "version", "frame"),
    [
        pytest.param(metadata.API, 1, _MANY.to_bytes(4, "big") + bytes(2 * _MANY), id="empty names"),
        pytest.param(produce.API, 9, _PRODUCE_START + encode_varint(_MANY + 1) + b"\1\1\0" * _MANY + b"\0", id="topics without partitions"),
        pytest.param(produce.API, 9, _PRODUCE_START + encode_varint(1001) + (b"\1" + encode_varint(1001) + b"\0\0\0\0\1\0" * 1000 + b"\0") * 1000 + b"\0", id="partitions of many topics"),
        pytest.param(metadata.API, 12, bytes(3) + encode_varint(_MANY) + b"\5\0" * _MANY, id="tagged fields that nobody knows"),
        pytest.param(fetch.API, 17, bytes(21) + b"\1\1\1" + encode_varint(_MANY) + b"\5\0" * _MANY, id="or somebody might"),
    ],
)  # fmt: skip
def test_a_frame_full_of_tiny_things_is_refused_before_it_takes_time(
    api: AnyApi, version: int, frame: bytes
) -> None:
    with pytest.raises(ProtocolError, match="more than 262144 elements"):
        api.decode_request(version, memoryview(frame), 0, len(frame))


def test_a_header_full_of_tagged_fields_is_refused_before_it_takes_time() -> None:
    header = bytes.fromhex("0000 0009 00000001 ffff") + encode_varint(_MANY) + b"\5\0" * _MANY
    with pytest.raises(ProtocolError, match="announces 300000 tagged fields"):
        decode_request_header(memoryview(header), 0, len(header), {0: 9})


def _decode_or_refuse(direction: Direction, version: int, frame: bytes) -> Message | None:
    try:
        return direction.decode(version, frame)
    except ProtocolError:
        return None


def _some_lengths_below(length: int) -> set[int]:
    """All of them for short frames; both ends and a comb between them for long ones."""
    return {n for n in range(length) if n < 24 or n > length - 12 or n % 97 == 0}
