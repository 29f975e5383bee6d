"""Queues under kills: a few of them. `tests/chaos/run-queues` does as many as one has patience for."""

import pytest

from tests.balancing.haproxy import program
from tests.chaos.queue_rounds import run

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(program("haproxy") is None, reason="haproxy is missing (Debian: haproxy)"),
]


def test_nothing_is_lost_undone_or_early_though_nodes_and_front_ends_are_killed() -> None:
    totals = run(3, seed=1)
    assert totals.violations == []
    assert totals.sent > 100
    assert totals.deleted > 100
