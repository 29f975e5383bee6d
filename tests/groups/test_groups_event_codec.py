"""Events are Kafka's own records of `__consumer_offsets`, byte for byte."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import InvalidRecord
from ropewalk.base.ids import TopicId
from ropewalk.groups.answers import CommittedOffset
from ropewalk.groups.commands import Protocol
from ropewalk.groups.consumer.events import (
    ClassicDetails,
    Current,
    CurrentRecorded,
    Details,
    EpochRecorded,
    MemberRecorded,
    MemberState,
    Part,
    PartRemoved,
    PatternRecorded,
    TargetEpochRecorded,
    TargetRecorded,
)
from ropewalk.groups.event_codec import decode_event, encode_event
from ropewalk.groups.events import (
    Event,
    GenerationRecorded,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    RecordedMember,
)

AT_MS = 1_700_000_000_000
OFFSET = OffsetCommitted("g", "orders", 3, CommittedOffset(42, 7, "nøte", AT_MS))
MEMBERS = (
    RecordedMember("a-1", "x", "a", "/127.0.0.1", 60_000, 10_000, b"\1\2", b"\3"),
    RecordedMember("b-1", None, "b", "/127.0.0.1", 60_000, 10_000, b"", b""),
)
TOPIC_ID = TopicId(bytes(range(1, 17)))
GENERATION = GenerationRecorded("g", "consumer", 5, "range", "a-1", AT_MS, MEMBERS)
EMPTY = GenerationRecorded("g", "consumer", 6, None, None, AT_MS, ())

OFFSET_KEY = "000100016700066f726465727300000003"
GROUP_KEY = "0002000167"
WRITTEN = [
    pytest.param(
        OFFSET, OFFSET_KEY, "0003000000000000002a0000000700056ec3b874650000018bcfe56800", id="offset"
    ),
    pytest.param(OffsetRemoved("g", "orders", 3), OFFSET_KEY, None, id="no offset"),
    pytest.param(
        GENERATION,
        GROUP_KEY,
        "00030008636f6e73756d657200000005000572616e67650003612d310000018bcfe56800000000020003612d31000178000161"
        "000a2f3132372e302e302e310000ea600000271000000002010200000001030003622d31ffff000162000a2f3132372e302e30"
        "2e310000ea60000027100000000000000000",
        id="generation",
    ),
    pytest.param(
        EMPTY,
        GROUP_KEY,
        "00030008636f6e73756d657200000006ffffffff0000018bcfe5680000000000",
        id="empty group",
    ),
    pytest.param(GroupRemoved("g"), GROUP_KEY, None, id="no group"),
    pytest.param(EpochRecorded("g", 7, -2), "0003000167", "000000000007010008fffffffffffffffe", id="epoch"),
    pytest.param(
        MemberRecorded(
            "g",
            "m",
            Details(
                client_id="c",
                client_host="/h",
                instance_id="x",
                topics=("t", "u"),
                pattern="v.*",
                rebalance_timeout_ms=60_000,
                assignor="range",
                classic=ClassicDetails(6_000, (Protocol("range", b"\1\2"),)),
            ),
        ),
        "000500016700016d",
        "00000278000263032f68030274027504762e2a0000ea600672616e67650100110100001770020672616e67650301020000",
        id="member",
    ),
    pytest.param(
        TargetEpochRecorded("g", 7, AT_MS),
        "0006000167",
        "0000000000070100080000018bcfe56800",
        id="target epoch",
    ),
    pytest.param(
        TargetRecorded("g", "m", frozenset({(TOPIC_ID, 0), (TOPIC_ID, 2)})),
        "000700016700016d",
        "0000020102030405060708090a0b0c0d0e0f100300000000000000020000",
        id="target",
    ),
    pytest.param(
        CurrentRecorded(
            "g",
            "m",
            Current(7, 6, MemberState.UNREVOKED, frozenset({(TOPIC_ID, 0)}), frozenset({(TOPIC_ID, 2)})),
        ),
        "000800016700016d",
        "0000000000070000000601020102030405060708090a0b0c0d0e0f1002000000000002"
        "0102030405060708090a0b0c0d0e0f1002000000020000",
        id="current",
    ),
    pytest.param(
        PatternRecorded("g", "v.*", ("v",), 3, AT_MS),
        "00100001670003762e2a",
        "000002027600000000000000030000018bcfe5680000",
        id="pattern",
    ),
    pytest.param(PartRemoved("g", Part.CURRENT, "m"), "000800016700016d", None, id="no current"),
]
"""As Kafka 4.3.1's own classes write them."""


@pytest.mark.parametrize(("event", "key", "value"), WRITTEN)
def test_records_are_what_kafka_writes(event: Event, key: str, value: str | None) -> None:
    written_key, written_value = encode_event(event)
    assert written_key.hex() == key
    assert (None if written_value is None else written_value.hex()) == value
    assert decode_event(written_key, written_value) == event


def test_other_versions_of_an_offset_are_read() -> None:
    first = bytes.fromhex("0001000000000000002a00056ec3b874650000018bcfe568000000000000000009")
    flexible = bytes.fromhex("0004000000000000002a00000007066ec3b874650000018bcfe5680000")
    key = bytes.fromhex(OFFSET_KEY)
    assert decode_event(key, flexible) == OFFSET
    assert decode_event(b"\0\0" + key[2:], first) == OffsetCommitted(
        "g", "orders", 3, CommittedOffset(42, -1, "nøte", AT_MS)
    )


def test_other_versions_of_a_generation_are_read() -> None:
    flexible = bytes.fromhex(
        "000409636f6e73756d6572000000050672616e676504612d310000018bcfe568000304612d31027802610b2f3132372e302e302e31"
        "0000ea600000271003010202030004622d310002620b2f3132372e302e302e310000ea600000271001010000"
    )
    assert decode_event(bytes.fromhex(GROUP_KEY), flexible) == GENERATION
    first = bytes.fromhex(
        "00000008636f6e73756d657200000005000572616e67650003612d31000000020003612d31000161000a2f3132372e302e302e31"
        "0000271000000002010200000001030003622d31000162000a2f3132372e302e302e31000027100000000000000000"
    )
    read = decode_event(bytes.fromhex(GROUP_KEY), first)
    assert isinstance(read, GenerationRecorded)
    assert (read.state_at_ms, read.members[0].rebalance_timeout_ms, read.members[0].instance_id) == (
        -1,
        -1,
        None,
    )


@pytest.mark.parametrize("kind", [-1, 4, 9, 999])
def test_records_of_other_kinds_are_skipped(kind: int) -> None:
    assert decode_event(kind.to_bytes(2, "big", signed=True) + b"anything", b"\0\0whatever") is None
    assert decode_event(b"", b"") is None


names = st.text(max_size=20)
numbers = st.integers(-(2**31), 2**31 - 1)
large_numbers = st.integers(-(2**63), 2**63 - 1)
committed_offsets = st.builds(CommittedOffset, large_numbers, numbers, names, large_numbers)
members = st.builds(
    RecordedMember, names, st.none() | names, names, names, numbers, numbers, st.binary(), st.binary()
)
shares = st.frozensets(
    st.tuples(st.binary(min_size=16, max_size=16).map(TopicId), st.integers(0, 2**31 - 1)), max_size=5
)
details = st.builds(
    Details,
    names,
    names,
    st.none() | names,
    st.none() | names,
    st.lists(names).map(tuple),
    st.none() | names.filter(bool),
    numbers,
    st.none() | names,
    st.none()
    | st.builds(
        ClassicDetails, numbers, st.lists(st.builds(Protocol, names, st.binary()), max_size=3).map(tuple)
    ),
)
events = st.one_of(
    st.builds(OffsetCommitted, names, names, numbers, committed_offsets),
    st.builds(OffsetRemoved, names, names, numbers),
    st.builds(GroupRemoved, names),
    st.builds(EpochRecorded, names, numbers, large_numbers),
    st.builds(MemberRecorded, names, names, details),
    st.builds(TargetEpochRecorded, names, numbers, large_numbers),
    st.builds(TargetRecorded, names, names, shares),
    st.builds(
        CurrentRecorded,
        names,
        names,
        st.builds(Current, numbers, numbers, st.sampled_from(MemberState), shares, shares),
    ),
    st.builds(PatternRecorded, names, names, st.lists(names).map(tuple), large_numbers, large_numbers),
    st.builds(PartRemoved, names, st.sampled_from([Part.EPOCH, Part.TARGET_EPOCH])),
    st.builds(
        PartRemoved, names, st.sampled_from([Part.MEMBER, Part.TARGET, Part.CURRENT, Part.PATTERN]), names
    ),
    st.builds(
        GenerationRecorded,
        names,
        names,
        numbers,
        st.none() | names,
        st.none() | names,
        large_numbers,
        st.lists(members, max_size=4).map(tuple),
    ),
)


@given(events)
def test_every_event_comes_back(event: Event) -> None:
    assert decode_event(*encode_event(event)) == event


@given(events, st.data())
def test_damage_is_refused_and_never_crashes(event: Event, data: st.DataObject) -> None:
    """What is cut short is refused; other bytes may make sense, but then as an event, or as nothing of ours."""
    key, value = encode_event(event)
    if value is not None:
        cut = data.draw(st.integers(0, len(value) - 1))
        with pytest.raises(InvalidRecord):
            decode_event(key, value[:cut])
        position = data.draw(st.integers(0, len(value) - 1))
        changed = bytearray(value)
        changed[position] = data.draw(st.integers(0, 255))
        value = bytes(changed)
    with suppress(InvalidRecord):
        decode_event(key[: data.draw(st.integers(0, len(key)))], value)
