"""Which messages have to be extended when: any mixture of holds, extensions, failures and drops."""

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.limits import QUEUE_VISIBILITY_MS_MAX
from ropewalk.client.queues.holding import Holding


def holding_one(visibility_ms: int = 30_000) -> Holding[str]:
    holding: Holding[str] = Holding()
    holding.hold("a", received_ms=0, until_ms=visibility_ms, visibility_ms=visibility_ms)
    return holding


def test_a_message_is_due_when_half_of_its_time_is_over() -> None:
    holding = holding_one()
    assert holding.next_due_ms() == 15_000
    assert holding.take_due(14_999) == []
    assert holding.take_due(15_000) == [("a", 30)]
    assert holding.next_due_ms() is None  # until somebody says what became of it


def test_a_failure_is_followed_by_another_attempt_until_the_time_is_over() -> None:
    holding = holding_one()
    holding.take_due(15_000)
    holding.failed("a", 16_000)
    assert holding.next_due_ms() == 17_000
    holding.take_due(17_000)
    holding.failed("a", 30_000)
    assert "a" not in holding


def test_what_was_dropped_while_the_server_was_asked_stays_dropped() -> None:
    holding = holding_one()
    holding.take_due(15_000)
    holding.drop("a")
    holding.extended("a", until_ms=45_000)
    holding.failed("a", 16_000)
    assert holding.next_due_ms() is None


@given(
    visibility_ms=st.integers(1_000, QUEUE_VISIBILITY_MS_MAX).map(lambda ms: ms // 1000 * 1000),
    delays_ms=st.lists(st.integers(0, 5_000), min_size=1, max_size=50),
)
def test_nothing_is_hidden_beyond_twelve_hours_and_no_extension_makes_it_shorter(
    visibility_ms: int, delays_ms: list[int]
) -> None:
    holding = holding_one(visibility_ms)
    until_ms: float = visibility_ms
    for delay_ms in delays_ms:
        due_ms = holding.next_due_ms()
        if due_ms is None:
            break
        for key, seconds in holding.take_due(due_ms + delay_ms):
            assert seconds >= 1
            assert until_ms < due_ms + delay_ms + seconds * 1000 <= QUEUE_VISIBILITY_MS_MAX
            until_ms = due_ms + delay_ms + seconds * 1000
            holding.extended(key, until_ms=until_ms)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=200))
def test_what_is_due_is_what_is_held(steps: list[tuple[int, bool]]) -> None:
    holding: Holding[int] = Holding()
    held = set()
    for key, holds in steps:
        if holds:
            holding.hold(key, received_ms=0, until_ms=30_000, visibility_ms=30_000)
            held.add(key)
        else:
            holding.drop(key)
            held.discard(key)
    assert len(holding) == len(held)
    due = [key for key, _ in holding.take_due(20_000)]
    assert sorted(due) == sorted(held)
