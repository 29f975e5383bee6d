"""Events that hold each other: what was altered, taken out, put in or exchanged is found."""

from collections.abc import Callable

import pytest

from ropewalk.broker.watching.audit_events import change_event, gap_event
from ropewalk.metadata.records import ChangeMade
from ropewalk.security.audit_chain import Fault, hash_of, number_of, verify


def trail(count: int = 5) -> list[bytes]:
    events: list[bytes] = []
    previous = ""
    for number in range(1, count + 1):
        event = change_event(ChangeMade(number, "CreateTopics", "User:ann", number * 1000), previous)
        if number == 3:  # two in one
            event = gap_event(3, 4, at_ms=0, previous=previous)
        if number == 4:
            continue
        events.append(event)
        previous = hash_of(event)
    return events


def altered(events: list[bytes]) -> list[bytes]:
    return [*events[:1], events[1].replace(b"ann", b"bob"), *events[2:]]


def without_one(events: list[bytes]) -> list[bytes]:
    return [*events[:1], *events[2:]]


def exchanged(events: list[bytes]) -> list[bytes]:
    return [events[1], events[0], *events[2:]]


def doubled(events: list[bytes]) -> list[bytes]:
    return [*events[:2], events[1], *events[2:]]


def garbled(events: list[bytes]) -> list[bytes]:
    return [events[0], b"{", *events[2:]]


def test_a_whole_trail_has_no_faults_from_wherever_it_is_kept() -> None:
    events = trail()
    assert [number_of(event) for event in events] == [1, 2, 4, 5]
    for start in range(len(events)):
        assert list(verify(enumerate(events[start:]))) == []


@pytest.mark.parametrize("spoil", [altered, without_one, exchanged, doubled, garbled])
def test_what_was_done_to_a_trail_is_found(spoil: Callable[[list[bytes]], list[bytes]]) -> None:
    found = list(verify(enumerate(spoil(trail()))))
    assert found
    assert all(isinstance(fault, Fault) for fault in found)


def test_the_place_of_a_fault_is_told() -> None:
    assert [fault.offset for fault in verify(enumerate(altered(trail()), 10))] == [12]
    assert "a missing" not in str(trail())
    assert [fault.text for fault in verify(enumerate(without_one(trail())))] == [
        "does not hold the one before it: that was altered, or one between them is gone",
        "has the number 3, 2 is next",
    ]
