"""The time of day a node goes by: slewed with the clock, and while that has jumped, things are kept longer."""

import pytest

from ropewalk.base.limits import CLOCK_DOUBTED_MS, CLOCK_STEP_MS_MAX
from ropewalk.broker.partitions.believed_clock import BelievedClock

DAY_MS = 86_400_000
START_MS = 1_800_000_000_000


class Clock:
    def __init__(self) -> None:
        self.elapsed_ms = 5_000.0
        self.offset_ms = 0

    def now_ms(self) -> int:
        return START_MS + int(self.elapsed_ms) + self.offset_ms

    def monotonic_ms(self) -> float:
        return self.elapsed_ms


@pytest.mark.parametrize(
    "jump_ms", [10 * DAY_MS, -10 * DAY_MS, 2 * CLOCK_STEP_MS_MAX, -2 * CLOCK_STEP_MS_MAX]
)
def test_while_a_jump_is_doubted_stamps_are_late_and_nothing_expires_early(jump_ms: int) -> None:
    clock = Clock()
    believed = BelievedClock(clock)
    clock.offset_ms = jump_ms
    for _ in range(5):
        clock.elapsed_ms += 60_000
        right_ms = START_MS + clock.elapsed_ms
        assert believed.expiry_ms() == min(right_ms, clock.now_ms())
        assert believed.now_ms() == max(right_ms, clock.now_ms())
        assert believed.doubted_by_ms == jump_ms
    clock.offset_ms = 0
    assert believed.now_ms() == believed.expiry_ms() == clock.now_ms()
    assert believed.doubted_by_ms is None


def test_a_clock_that_stays_where_it_jumped_to_is_believed_in_the_end() -> None:
    clock = Clock()
    believed = BelievedClock(clock)
    clock.offset_ms = 10 * DAY_MS
    believed.now_ms()
    clock.elapsed_ms += CLOCK_DOUBTED_MS - 1
    assert believed.expiry_ms() == START_MS + clock.elapsed_ms
    clock.offset_ms = 20 * DAY_MS  # it jumps again, and is doubted anew
    believed.now_ms()
    clock.elapsed_ms += CLOCK_DOUBTED_MS - 1
    assert believed.expiry_ms() == START_MS + clock.elapsed_ms
    clock.elapsed_ms += 1
    assert believed.expiry_ms() == clock.now_ms()


def test_a_clock_set_back_into_a_second_that_was_right_is_doubted_when_that_ends() -> None:
    clock = Clock()
    believed = BelievedClock(clock)
    stamped_ms = believed.now_ms()
    clock.elapsed_ms += DAY_MS
    clock.offset_ms = -DAY_MS
    assert believed.now_ms() == stamped_ms
    clock.elapsed_ms += 1_000
    assert believed.now_ms() == START_MS + clock.elapsed_ms


def test_a_clock_set_back_into_a_second_that_was_right_is_doubted_before_anything_expires() -> None:
    clock = Clock()
    believed = BelievedClock(clock)
    believed.now_ms()
    clock.elapsed_ms += DAY_MS
    clock.offset_ms = -DAY_MS
    assert believed.expiry_ms() == clock.now_ms()
    assert believed.doubted_by_ms == -DAY_MS
    assert believed.now_ms() == START_MS + clock.elapsed_ms


def test_small_steps_and_a_clock_that_runs_fast_are_followed_for_years() -> None:
    clock = Clock()
    believed = BelievedClock(clock)
    for step_ms in (-CLOCK_STEP_MS_MAX, 3, CLOCK_STEP_MS_MAX - 10, 999, 1001):
        clock.offset_ms += step_ms
        believed.now_ms()
        assert believed.expiry_ms() == clock.now_ms()
    for _ in range(1000):
        clock.elapsed_ms += DAY_MS
        clock.offset_ms += 9_000
        assert believed.now_ms() == believed.expiry_ms() == clock.now_ms()
    assert believed.doubted_by_ms is None
