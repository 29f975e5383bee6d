"""What is at hand of queues' logs: within a bound for all of them, and of those that are used."""

import pytest

from ropewalk.base.ids import Offset
from ropewalk.broker.queues import read_ahead
from ropewalk.broker.queues.read_ahead import ReadAhead, ReadAheadRoom
from ropewalk.broker.queues.reading import Passage
from ropewalk.records.record import Record

BODY = bytes(800)


@pytest.fixture(autouse=True)
def _room_for_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is counted with a thousand bytes."""
    monkeypatch.setattr(read_ahead, "QUEUE_READ_AHEAD_NODE_BYTES_MAX", 10_000)


def records(start_offset: int, count: int) -> tuple[Record, ...]:
    return tuple([Record(Offset(start_offset + each), 0, None, BODY) for each in range(count)])


def write(ahead: ReadAhead, start_offset: int, count: int) -> None:
    ahead.note_written(start_offset, start_offset + count, records(start_offset, count))


def offsets_at_hand(ahead: ReadAhead) -> list[int]:
    """And tells them."""
    passage = ahead.next_passage(0, limit_offset=1_000)
    return [] if passage is None else [record.offset for record in passage.records]


def test_a_queue_that_nobody_asks_gives_its_room_to_those_that_are_used() -> None:
    room = ReadAheadRoom()
    idle, busy = ReadAhead(room), ReadAhead(room)
    write(idle, 0, 10)
    write(busy, 0, 3)
    assert offsets_at_hand(idle) == [], "it is read from the log again"
    assert offsets_at_hand(busy) == [0, 1, 2]
    assert room.used_bytes == busy.used_bytes == 3_000


def test_the_one_that_was_used_longest_ago_gives_way_first() -> None:
    room = ReadAheadRoom()
    first, second, third = ReadAhead(room), ReadAhead(room), ReadAhead(room)
    write(first, 0, 5)
    write(second, 0, 5)
    assert offsets_at_hand(first) == [0, 1, 2, 3, 4]
    write(third, 0, 3)
    assert (first.has([0, 1, 2, 3, 4]), offsets_at_hand(second)) == (True, [])


def test_what_is_read_takes_the_room_of_others_and_not_its_own() -> None:
    room = ReadAheadRoom()
    idle, busy = ReadAhead(room), ReadAhead(room)
    write(idle, 0, 8)
    write(busy, 0, 2)
    assert offsets_at_hand(busy) == [0, 1]
    busy.note_read(Passage(2, 4, records(2, 2)))
    assert busy.next_passage(2, limit_offset=1_000) is not None
    assert busy.has([0, 1, 2, 3])
    assert idle.used_bytes == 0


def test_one_queue_alone_keeps_within_the_room_and_what_it_read_last() -> None:
    room = ReadAheadRoom()
    only = ReadAhead(room)
    only.note_read(Passage(0, 12, records(0, 12)))
    assert only.next_passage(0, limit_offset=1_000) is not None
    only.note_read(Passage(12, 15, records(12, 3)))
    assert room.used_bytes < 10_000 + 3_000
    assert only.next_passage(12, limit_offset=1_000) is not None
    assert only.has([12, 13, 14])


def test_whoever_goes_leaves_nothing_in_the_room() -> None:
    room = ReadAheadRoom()
    gone, other = ReadAhead(room), ReadAhead(room)
    write(gone, 0, 9)
    gone.clear()
    assert room.used_bytes == 0
    write(other, 0, 9)
    write(other, 9, 1)
    assert room.used_bytes == 10_000
