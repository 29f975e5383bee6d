"""Events are Kafka's own records of `__transaction_state`, byte for byte."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import InvalidRecord
from ropewalk.base.ids import TopicPartition
from ropewalk.transactions.event_codec import decode_event, encode_event
from ropewalk.transactions.events import Event, TransactionalIdRemoved, TransactionRecorded, TransactionState
from ropewalk.transactions.identity import EPOCH_LAST, EPOCH_MAX

AT_MS = 1_700_000_000_000
PLACES = (TopicPartition("orders", 3),)
KEY = "00000009c3bc62657274726167"


def recorded(**changes: object) -> TransactionRecorded:
    fields: dict[str, object] = {
        "transactional_id": "übertrag",
        "producer_id": 7,
        "producer_epoch": 3,
        "state": TransactionState.EMPTY,
        "timeout_ms": 60_000,
        "partitions": (),
        "started_at_ms": AT_MS,
        "updated_at_ms": AT_MS,
        "version": 2,
        "previous_producer_id": 7,
    }
    return TransactionRecorded(**(fields | changes))  # type: ignore[arg-type]  # a table of changes has no one type


EMPTY = recorded(producer_epoch=0, started_at_ms=-1, version=0)
ONGOING = recorded(state=TransactionState.ONGOING, partitions=PLACES, updated_at_ms=AT_MS + 1)
PREPARED = recorded(
    state=TransactionState.PREPARE_COMMIT,
    partitions=PLACES,
    producer_epoch=4,
    previous_epoch=3,
    updated_at_ms=AT_MS + 2,
)
LAST_EPOCH = recorded(
    state=TransactionState.PREPARE_ABORT,
    partitions=PLACES,
    producer_epoch=EPOCH_MAX,
    previous_epoch=EPOCH_LAST,
    next_producer_id=9,
    updated_at_ms=AT_MS + 2,
)
MOVED = recorded(
    state=TransactionState.COMPLETE_ABORT,
    producer_id=9,
    producer_epoch=0,
    previous_epoch=EPOCH_LAST,
    updated_at_ms=AT_MS + 3,
)
WRITTEN = [
    pytest.param(
        EMPTY,
        "0001000000000000000700000000ea6000000000018bcfe56800ffffffffffffffff0100080000000000000007",
        id="empty",
    ),
    pytest.param(
        ONGOING,
        "0001000000000000000700030000ea600102076f72646572730200000003000000018bcfe568010000018bcfe56800020008000000"
        "000000000702020002",
        id="ongoing",
    ),
    pytest.param(
        PREPARED,
        "0001000000000000000700040000ea600202076f72646572730200000003000000018bcfe568020000018bcfe56800020008000000"
        "000000000702020002",
        id="prepared",
    ),
    pytest.param(
        LAST_EPOCH,
        "000100000000000000077fff0000ea600302076f72646572730200000003000000018bcfe568020000018bcfe56800030008000000"
        "00000000070108000000000000000902020002",
        id="last epoch",
    ),
    pytest.param(
        MOVED,
        "0001000000000000000900000000ea6005010000018bcfe568030000018bcfe56800020008000000000000000702020002",
        id="moved to another producer id",
    ),
    pytest.param(TransactionalIdRemoved("übertrag"), None, id="removed"),
]
"""As Kafka 4.3.1's own `TransactionLog` writes them."""


@pytest.mark.parametrize(("event", "value"), WRITTEN)
def test_records_are_what_kafka_writes(event: Event, value: str | None) -> None:
    written_key, written_value = encode_event(event)
    assert written_key.hex() == KEY
    assert (None if written_value is None else written_value.hex()) == value
    assert decode_event(written_key, written_value) == event


def test_the_first_version_is_read() -> None:
    first = bytes.fromhex(
        "0000000000000000000700030000ea60030000000100066f726465727300000001000000030000018bcfe568010000018bcfe56800"
    )
    assert decode_event(bytes.fromhex(KEY), first) == recorded(
        state=TransactionState.PREPARE_ABORT,
        partitions=PLACES,
        updated_at_ms=AT_MS + 1,
        version=0,
        previous_producer_id=-1,
    )


def test_an_epoch_that_cannot_be_told_is_written_under_a_tag_of_ours() -> None:
    """Kafka's reader skips it, and reads the rest as it would without."""
    gone_on = recorded(producer_epoch=1, previous_epoch=0, started_at_ms=-1, version=0)
    _, value = encode_event(gone_on)
    assert value is not None
    assert value.hex() == (
        "0001000000000000000700010000ea6000000000018bcfe56800ffffffffffffffff0200080000000000000007904e020000"
    )


@pytest.mark.parametrize("status", [6, 7, 8, 127, -1])
def test_states_that_are_never_recorded_are_refused(status: int) -> None:
    key, value = encode_event(EMPTY)
    assert value is not None
    damaged = bytearray(value)
    damaged[16] = status % 256
    with pytest.raises(InvalidRecord):
        decode_event(key, bytes(damaged))


@pytest.mark.parametrize("kind", [-1, 1, 999])
def test_records_of_other_kinds_are_skipped(kind: int) -> None:
    assert decode_event(kind.to_bytes(2, "big", signed=True) + b"anything", b"\0\0whatever") is None
    assert decode_event(b"", b"") is None


names = st.text(max_size=20)
epochs = st.integers(-1, EPOCH_MAX)
numbers = st.integers(-1, 2**31 - 1)
large_numbers = st.integers(-1, 2**63 - 1)
places = st.lists(st.builds(TopicPartition, names, numbers), max_size=5, unique=True)
states = st.sampled_from(list(TransactionState)[1:6])
open_events = st.builds(
    TransactionRecorded,
    names,
    large_numbers,
    epochs,
    states,
    numbers,
    places.map(lambda found: tuple(sorted(found))),
    large_numbers,
    large_numbers,
    st.sampled_from([0, 1, 2]),
    large_numbers,
    large_numbers,
    epochs,
)
events = open_events | st.builds(TransactionalIdRemoved, names)


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
