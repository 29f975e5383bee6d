"""Whatever is encoded decodes to the same message, in every version of every API and in both directions."""

import subprocess
import sys

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.messages import create_topics, fetch, metadata, produce
from ropewalk.wire.types import Buffer
from tests.wire.invented import (
    DIRECTIONS,
    OWN_DIRECTIONS,
    PEER_DIRECTIONS,
    Direction,
    as_of,
    examples,
    for_every_direction,
    messages_of,
)


@for_every_direction
@examples(12)
@given(data=st.data())
def test_a_message_survives_the_wire_in_every_version(direction: Direction, data: st.DataObject) -> None:
    message = data.draw(messages_of(direction.message))
    for version in direction.api.versions:
        note(f"version {version}")
        carried = as_of(message, version)
        encoded = direction.encode(version, carried)
        assert direction.decode(version, encoded, before=b"before", after=b"after") == carried


def test_every_api_has_its_own_key_and_kafkas_names() -> None:
    directions = [*DIRECTIONS, *OWN_DIRECTIONS, *PEER_DIRECTIONS]
    assert len(directions) == 2 * len({direction.api.key for direction in directions})
    assert all(direction.api.key >= 10000 for direction in PEER_DIRECTIONS)
    for direction in directions:
        assert direction.message.__name__ == direction.api.name + direction.name.capitalize()


@pytest.mark.parametrize("version", produce.API.versions)
def test_decoded_records_are_a_view_of_the_frame(version: int) -> None:
    request = _produce_request(b"batch")
    frame = bytearray(b"".join(produce.API.encode_request(version, request)))
    decoded = produce.API.decode_request(version, memoryview(frame), 0, len(frame))
    records = decoded.topics[0].partitions[0].records
    assert isinstance(records, memoryview)
    frame[frame.index(b"batch")] = ord("B")
    assert bytes(records) == b"Batch"


def test_encoded_records_are_the_very_object_that_was_given() -> None:
    batches: list[Buffer] = [b"first" * 100, bytearray(b"second"), memoryview(b"third")]
    response = fetch.FetchResponse(
        0,
        topics=(
            fetch.FetchableTopicResponse(
                partitions=tuple(
                    fetch.PartitionData(i, 0, 0, records=batch) for i, batch in enumerate(batches)
                )
            ),
        ),
    )
    chunks = fetch.API.encode_response(16, response)
    assert [chunk for chunk in chunks if any(chunk is batch for batch in batches)] == batches
    assert len(chunks) == 2 * len(batches) + 1


def test_a_field_that_the_version_lacks_is_left_out() -> None:
    broker = metadata.MetadataResponseBroker(1, "h", 9092, rack="somewhere")
    encoded = b"".join(metadata.API.encode_response(0, metadata.MetadataResponse(brokers=(broker,))))
    assert b"somewhere" not in encoded


@pytest.mark.parametrize("count", [126, 127, 128, 16_383, 16_384])
def test_counts_of_several_bytes_survive(count: int) -> None:
    topics = tuple(metadata.MetadataRequestTopic(name=f"t{i}") for i in range(count))
    for version in (8, 12):
        encoded = b"".join(metadata.API.encode_request(version, metadata.MetadataRequest(topics)))
        decoded = metadata.API.decode_request(version, memoryview(encoded), 0, len(encoded))
        assert decoded.topics == topics


@pytest.mark.parametrize("version", [4, 7], ids=["with a length of two bytes", "with a compact length"])
def test_a_string_beyond_kafkas_bound_is_refused_when_encoding(version: int) -> None:
    longest = create_topics.CreateTopicsRequest((create_topics.CreatableTopic("x" * 0x7FFF, 1, 1),))
    too_long = create_topics.CreateTopicsRequest((create_topics.CreatableTopic("x" * 0x8000, 1, 1),))
    assert create_topics.API.encode_request(version, longest)
    with pytest.raises(ProtocolError, match="name is a string of 32768 bytes"):
        create_topics.API.encode_request(version, too_long)


def test_a_number_beyond_its_field_is_refused_when_encoding() -> None:
    with pytest.raises(ProtocolError, match="Produce request v9 cannot carry a value"):
        produce.API.encode_request(9, produce.ProduceRequest(acks=1 << 15))


@pytest.mark.parametrize("version", [-1, 0, 2, 14, 1000])
def test_a_version_outside_the_range_is_refused(version: int) -> None:
    with pytest.raises(ProtocolError, match="3 to 13"):
        produce.API.decode_request(version, memoryview(b""), 0, 0)
    with pytest.raises(ProtocolError, match="3 to 13"):
        produce.API.encode_response(version, produce.ProduceResponse(()))


def test_naming_an_api_does_not_load_the_compiler() -> None:
    program = "import sys, ropewalk.wire.messages.produce; print('ropewalk.wire.compile' in sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "False\n"


def _produce_request(records: bytes) -> produce.ProduceRequest:
    return produce.ProduceRequest(
        topics=(produce.TopicProduceData("t", partitions=(produce.PartitionProduceData(0, records),)),)
    )
