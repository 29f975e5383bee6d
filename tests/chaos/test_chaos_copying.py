"""Copying exactly once under kills: a few of them. `tests/chaos/run-copying` does as many as one has patience for."""

import pytest

from tests.chaos.copying import run

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]


def test_each_record_is_copied_once_though_copiers_and_a_node_are_killed() -> None:
    totals = run(3, seed=0, node_every=2)
    assert totals.violations == []
    assert totals.faults == {"kill": 3, "pause": 0, "node": 1}
    assert totals.copied == totals.fed > 0
