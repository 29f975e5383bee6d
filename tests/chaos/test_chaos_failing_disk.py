"""A short slice of the rounds on a failing disk; `tests/chaos/run-failing-disk` does as many as one has patience for."""

import pytest

from tests.chaos.failing_rounds import run

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]


def test_nothing_acknowledged_is_lost_when_the_disk_fails_and_the_node_ends_of_it(loop_devices: None) -> None:
    totals = run(rounds=3)
    assert totals.violations == []
    assert totals.died == 2
