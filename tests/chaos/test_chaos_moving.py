"""A slice of the moves that `tests/chaos/run-moving` goes on with for as long as one has patience."""

import pytest

from tests.chaos.moving_rounds import run

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]


def test_nothing_is_lost_while_the_metadata_go_to_etcd(etcd: None) -> None:
    totals = run(1, seed=34)
    assert totals.violations == []
    assert totals.moves == 1
    assert totals.copied == totals.fed > 0
