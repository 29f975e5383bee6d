"""The table of fetch sessions: epochs, refusals, and who has to go when there are too many."""

from random import Random

import pytest

from ropewalk.base.errors import (
    FetchSessionEpochInvalid,
    FetchSessionTopicsMixed,
    FetchSessionUnknown,
    RopewalkError,
)
from ropewalk.base.ids import Offset, TopicId
from ropewalk.base.limits import FETCH_SESSION_KEPT_MS
from ropewalk.broker.reading.fetch_session import FetchSession, Interest, TopicKey
from ropewalk.broker.reading.fetch_sessions import FetchSessions

LATER_MS = FETCH_SESSION_KEPT_MS + 1


def interests(*indexes: int, topic: TopicKey = "t") -> list[Interest]:
    return [Interest(topic, index, Offset(0), 1000, -1) for index in indexes]


def session_of(count: int, *, topics_by_id: bool = False) -> FetchSession:
    return FetchSession(interests(*range(count)), topics_by_id=topics_by_id)


def opened(sessions: FetchSessions, count: int, now_ms: float = 0) -> FetchSession:
    session = session_of(count)
    sessions.open(session, now_ms)
    return session


def resume(
    sessions: FetchSessions,
    session_id: int,
    epoch: int,
    *,
    named: list[Interest] | None = None,
    forgotten: list[tuple[TopicKey, int]] | None = None,
    topics_by_id: bool = False,
    now_ms: float = 0,
) -> FetchSession:
    return sessions.resume(
        session_id,
        epoch,
        topics_by_id=topics_by_id,
        committed_only=False,
        named=named or [],
        forgotten=forgotten or [],
        now_ms=now_ms,
    )


def table(count_max: int = 10, partition_count_max: int = 1000) -> FetchSessions:
    return FetchSessions(Random(0), count_max=count_max, partition_count_max=partition_count_max)


def test_every_fetch_carries_the_next_epoch() -> None:
    sessions = table()
    session = opened(sessions, 2)
    for epoch in range(1, 10):
        assert resume(sessions, session.id, epoch) is session


def test_after_the_last_epoch_comes_the_first_again() -> None:
    sessions = table()
    session = opened(sessions, 2)
    session.epoch = 2**31 - 1
    resume(sessions, session.id, 2**31 - 1)
    assert session.epoch == 1, "0 would begin a new session"


@pytest.mark.parametrize(
    ("session_id", "epoch", "topics_by_id", "expected"),
    [
        pytest.param(0, 5, False, FetchSessionUnknown, id="no session has id 0"),
        pytest.param(99, 1, False, FetchSessionUnknown, id="an id that was never given"),
        pytest.param(None, 2, False, FetchSessionEpochInvalid, id="an epoch ahead"),
        pytest.param(None, -7, False, FetchSessionEpochInvalid, id="an epoch that makes no sense"),
        pytest.param(None, 1, True, FetchSessionTopicsMixed, id="by id in a session by name"),
    ],
)
def test_what_is_refused_leaves_the_session_as_it_was(
    session_id: int | None, epoch: int, topics_by_id: bool, expected: type[RopewalkError]
) -> None:
    sessions = table()
    session = opened(sessions, 2)
    named = interests(7, topic=TopicId(bytes(16)) if topics_by_id else "t")
    with pytest.raises(expected):
        resume(
            sessions,
            session.id if session_id is None else session_id,
            epoch,
            named=named,
            forgotten=[("t", 0)],
            topics_by_id=topics_by_id,
        )
    assert len(session) == sessions.partition_count == 2
    assert resume(sessions, session.id, 1) is session


def test_a_fetch_that_is_sent_twice_is_refused_the_second_time() -> None:
    sessions = table()
    session = opened(sessions, 2)
    resume(sessions, session.id, 1)
    with pytest.raises(FetchSessionEpochInvalid):
        resume(sessions, session.id, 1)


def test_a_reader_names_and_forgets_partitions() -> None:
    sessions = table()
    session = opened(sessions, 3)
    resume(sessions, session.id, 1, named=interests(2, 3, 4), forgotten=[("t", 0), ("t", 4), ("t", 99)])
    assert {interest.index for interest in session.due} == {1, 2, 3}
    assert len(session) == sessions.partition_count == 3


def test_a_session_in_which_nothing_is_left_ends() -> None:
    sessions = table()
    session = opened(sessions, 1)
    session_id = session.id
    assert resume(sessions, session_id, 1, forgotten=[("t", 0)]).id == 0
    assert (len(sessions), sessions.partition_count) == (0, 0)
    with pytest.raises(FetchSessionUnknown):
        resume(sessions, session_id, 2)


@pytest.mark.parametrize(
    ("count_max", "count", "expected"),
    [(0, 5, False), (1, 5, True), (1, 0, False)],
    ids=["there are no slots", "there is one", "nothing is followed"],
)
def test_not_everybody_gets_a_session(count_max: int, count: int, expected: bool) -> None:
    session = session_of(count)
    assert table(count_max).open(session, 0) is expected
    assert (session.id != 0) is expected


@pytest.mark.parametrize(
    ("sizes", "used_at_ms", "now_ms", "count", "expected"),
    [
        pytest.param([5, 5], [0, 0], 10, 9, None, id="all are young and in use"),
        pytest.param([5, 5], [0, 1], LATER_MS, 1, 0, id="the longest unused goes, however small the new one"),
        pytest.param([9, 5], [LATER_MS, LATER_MS], LATER_MS, 6, 1, id="the smallest makes way for a larger"),
        pytest.param([9, 5], [LATER_MS, LATER_MS], LATER_MS, 5, None, id="but not for one of its size"),
    ],
)
def test_who_has_to_go(
    sizes: list[int], used_at_ms: list[int], now_ms: int, count: int, expected: int | None
) -> None:
    sessions = table(len(sizes))
    there = [opened(sessions, size) for size in sizes]
    for session, at_ms in zip(there, used_at_ms, strict=True):
        if at_ms:
            resume(sessions, session.id, 1, now_ms=at_ms)
    new = session_of(count)
    assert sessions.open(new, now_ms) is (expected is not None)
    for position, session in enumerate(there):
        if position == expected:
            with pytest.raises(FetchSessionUnknown):
                resume(sessions, session.id, session.epoch, now_ms=now_ms)
        else:
            resume(sessions, session.id, session.epoch, now_ms=now_ms)


def test_sessions_together_hold_only_so_many_partitions() -> None:
    sessions = table(10, partition_count_max=10)
    first, second = opened(sessions, 4), opened(sessions, 5)
    assert not sessions.open(session_of(2), 0)
    with pytest.raises(FetchSessionUnknown, match="too large"):
        resume(sessions, second.id, 1, named=interests(5, 6))
    assert (len(sessions), sessions.partition_count) == (1, 4)
    assert not sessions.open(session_of(11), LATER_MS), "it would not fit if it were alone"
    assert len(sessions) == 0, "what was no longer used has made room"
    assert sessions.open(session_of(10), LATER_MS)
    assert first.id != 0


def test_ids_are_never_0_and_never_given_twice() -> None:
    sessions = table(500, partition_count_max=10_000)
    ids = {opened(sessions, 1).id for _ in range(500)}
    assert len(ids) == 500
    assert min(ids) > 0
    assert max(ids) < 2**31


class Held:
    """A fetch that waits."""

    def __init__(self) -> None:
        self.hurried_count = 0

    def on_growth(self, grown_bytes: int) -> None: ...

    def on_change(self) -> None: ...

    def hurry(self) -> None:
        self.hurried_count += 1


def test_a_fetch_that_waits_can_be_hurried() -> None:
    sessions, held = table(), Held()
    session = opened(sessions, 2)
    resume(sessions, session.id, 1).begin(held)
    sessions.hurry(session.id, 1)
    assert held.hurried_count == 1


def test_a_fetch_can_be_hurried_before_it_is_there() -> None:
    sessions, held, later = table(), Held(), Held()
    session = opened(sessions, 2)
    sessions.hurry(session.id, 1)
    resume(sessions, session.id, 1).begin(held)
    resume(sessions, session.id, 2).begin(later)
    assert (held.hurried_count, later.hurried_count) == (1, 0)


def test_who_hurries_a_fetch_that_is_over_hurries_no_other() -> None:
    sessions, held = table(), Held()
    session = opened(sessions, 2)
    resume(sessions, session.id, 1)
    resume(sessions, session.id, 2).begin(held)
    sessions.hurry(session.id, 1)
    sessions.hurry(session.id + 1, 2)
    assert held.hurried_count == 0
