"""What consumers say to each other: every version, as kio has it, and bytes that are none of it."""

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader

from ropewalk.wire.consumer_protocol import (
    VERSION_MAX,
    Assignment,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    encode,
)

SUBSCRIPTION = Subscription(("a", "b"), b"x", (TopicPartitions("a", (0, 2)),), 7, "rack")
ASSIGNMENT = Assignment((TopicPartitions("a", (0, 2)), TopicPartitions("b", ())), b"")


@pytest.mark.parametrize("version", range(VERSION_MAX + 1))
def test_every_version_is_read_back_with_the_fields_it_has(version: int) -> None:
    decoded = decode_subscription(encode(SUBSCRIPTION, version))
    assert decoded is not None
    assert (decoded.topics, decoded.user_data) == (("a", "b"), b"x")
    assert decoded.owned_partitions == (SUBSCRIPTION.owned_partitions if version >= 1 else ())
    assert decoded.generation_id == (7 if version >= 2 else -1)
    assert decoded.rack_id == ("rack" if version >= 3 else None)
    assert decode_assignment(encode(ASSIGNMENT, version)) == ASSIGNMENT


@pytest.mark.parametrize("version", range(VERSION_MAX + 1))
def test_it_is_what_kio_reads(version: int) -> None:
    schema = import_module(f"kio.schema.consumer_protocol_subscription.v{version}.data")
    theirs, _ = entity_reader(schema.ConsumerProtocolSubscription)(encode(SUBSCRIPTION, version), 2)
    assert tuple(map(str, theirs.topics)) == SUBSCRIPTION.topics
    if version >= 1:
        (owned,) = theirs.owned_partitions
        assert (owned.topic, owned.partitions) == ("a", (0, 2))
    if version >= 2:
        assert theirs.generation_id == 7
    if version >= 3:
        assert theirs.rack_id == "rack"


def test_a_version_to_come_is_read_as_far_as_it_is_known() -> None:
    data = (9).to_bytes(2, "big") + encode(SUBSCRIPTION, VERSION_MAX)[2:] + b"more"
    assert decode_subscription(data) == SUBSCRIPTION


@given(st.binary(max_size=64))
def test_bytes_of_others_are_no_error(data: bytes) -> None:
    for decoded in (decode_subscription(data), decode_assignment(data)):
        assert decoded is None or isinstance(decoded, Subscription | Assignment)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", encode(SUBSCRIPTION, 3)[:-1]])
def test_what_is_cut_short_is_unknown(data: bytes) -> None:
    assert decode_subscription(data) is None
