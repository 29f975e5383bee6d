"""A minute of the fuzzer against a live node; `tests/fuzz/run` goes on for as long as one has patience for."""

import pytest

from tests.fuzz.campaign import Plan, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.mark.parametrize("in_memory", [True, False], ids=["in memory", "on disk"])
def test_a_node_lives_through_half_a_minute_of_hostile_requests(in_memory: bool) -> None:
    report = run(Plan(seed=20261116, seconds=30, in_memory=in_memory))
    assert report.violations == []
    assert report.tally.answers > 1000
