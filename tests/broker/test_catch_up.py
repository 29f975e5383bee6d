"""The budget of replicas that are behind."""

import pytest

from ropewalk.base.limits import CATCH_UP_BURST_MS
from ropewalk.broker.partitions.catch_up import CatchUpBudget


@pytest.mark.parametrize(
    ("charged_bytes", "after_ms", "expected_ms"),
    [
        pytest.param(0, 0, 0, id="nothing copied"),
        pytest.param(1_000 * CATCH_UP_BURST_MS // 1000, 0, 0, id="a burst"),
        pytest.param(1_000, 0, 1_000 - CATCH_UP_BURST_MS, id="a second's worth"),
        pytest.param(1_000, 300, 700 - CATCH_UP_BURST_MS, id="some of it worked off"),
        pytest.param(1_000, 5_000, 0, id="long ago"),
    ],
)
def test_how_long_to_wait_at_a_thousand_bytes_a_second(
    charged_bytes: int, after_ms: int, expected_ms: float
) -> None:
    budget = CatchUpBudget(1_000)
    budget.charge(charged_bytes, 10_000)
    assert budget.wait_ms(10_000 + after_ms) == expected_ms


def test_another_rate_applies_to_what_is_owed() -> None:
    budget = CatchUpBudget(1)
    budget.charge(1_000_000, 0)
    assert budget.wait_ms(0) > 100_000_000
    budget.bytes_per_second = 1_000_000
    assert budget.wait_ms(0) == 1_000 - CATCH_UP_BURST_MS


def test_over_time_the_rate_is_kept() -> None:
    budget, now_ms, copied_bytes = CatchUpBudget(10_000), 0.0, 0
    while now_ms < 60_000:
        if budget.wait_ms(now_ms):
            now_ms += budget.wait_ms(now_ms)
        else:
            budget.charge(700, now_ms)
            copied_bytes += 700
    assert copied_bytes == pytest.approx(600_000, rel=0.01)
