"""Sessions: who is logged in, and until when."""

import random

from ropewalk.base.limits import CONSOLE_SESSION_IDLE_MS, CONSOLE_SESSION_MS_MAX, CONSOLE_SESSIONS_MAX
from ropewalk.console.sessions import Session, Sessions

NOW = 1_000_000_000
FAR = NOW + 10 * CONSOLE_SESSION_MS_MAX


def begin(
    sessions: Sessions, *, user: str = "alice", ends_at_ms: int = FAR, now_ms: int = NOW, seed: int = 0
) -> str:
    return sessions.begin(user, "token", ends_at_ms, rng=random.Random(seed), now_ms=now_ms)


def found(sessions: Sessions, cookie: str | None, now_ms: int, *, is_used: bool = True) -> Session | None:
    return sessions.find(cookie, now_ms, is_used=is_used)


def test_who_has_the_cookie_is_the_user_and_nobody_else_is() -> None:
    sessions = Sessions()
    cookie = begin(sessions)
    session = found(sessions, cookie, NOW)
    assert session is not None
    assert session.user == "alice"
    assert "token" not in repr(session)
    for other in (None, "", cookie[:-1], cookie.upper(), session.key, "\udc80"):
        assert found(sessions, other, NOW) is None


def test_a_session_ends_when_it_is_not_used() -> None:
    sessions = Sessions()
    cookie = begin(sessions)
    assert found(sessions, cookie, NOW + CONSOLE_SESSION_IDLE_MS) is not None
    assert found(sessions, cookie, NOW + 2 * CONSOLE_SESSION_IDLE_MS) is not None
    assert found(sessions, cookie, NOW + 3 * CONSOLE_SESSION_IDLE_MS + 1) is None
    assert found(sessions, cookie, NOW) is None, "it does not come back"


def test_a_page_that_renews_itself_keeps_nobody_logged_in() -> None:
    sessions = Sessions()
    cookie = begin(sessions)
    for minute in range(30):
        assert found(sessions, cookie, NOW + minute * 60_000, is_used=False) is not None
    assert found(sessions, cookie, NOW + CONSOLE_SESSION_IDLE_MS + 1, is_used=False) is None


def test_a_session_that_is_used_all_the_time_ends_in_the_end_and_with_its_token() -> None:
    sessions = Sessions()
    long, short = begin(sessions), begin(sessions, ends_at_ms=NOW + 3_600_000, seed=1)
    alive = {long: 0, short: 0}
    for minute in range(24 * 60):
        for cookie in alive:
            if found(sessions, cookie, NOW + minute * 60_000) is not None:
                alive[cookie] = minute
    assert alive == {long: CONSOLE_SESSION_MS_MAX // 60_000 - 1, short: 59}


def test_who_logs_out_is_out_and_others_are_not() -> None:
    sessions = Sessions()
    one, other = begin(sessions), begin(sessions, seed=1)
    sessions.end(one)
    sessions.end(None)
    sessions.end("never")
    assert found(sessions, one, NOW) is None
    assert found(sessions, other, NOW) is not None


def test_there_are_so_many_and_the_one_away_longest_makes_room() -> None:
    sessions = Sessions()
    cookies = [begin(sessions, now_ms=NOW + each, seed=each) for each in range(CONSOLE_SESSIONS_MAX)]
    assert found(sessions, cookies[0], NOW + 10_000) is not None
    begin(sessions, now_ms=NOW + 10_000, seed=CONSOLE_SESSIONS_MAX)
    assert len(sessions) == CONSOLE_SESSIONS_MAX
    assert found(sessions, cookies[0], NOW + 10_000) is not None
    assert found(sessions, cookies[1], NOW + 10_000) is None


def test_a_sweep_takes_away_what_is_over() -> None:
    sessions = Sessions()
    key = found(sessions, begin(sessions), NOW)
    begin(sessions, now_ms=NOW + CONSOLE_SESSION_IDLE_MS, seed=1)
    sessions.sweep(NOW + CONSOLE_SESSION_IDLE_MS + 1)
    assert len(sessions) == 1
    assert key is not None
    assert not sessions.knows(key.key)
