"""A short slice of the rounds with full disks; `tests/chaos/run-full` does as many as one has patience for."""

import pytest

from tests.chaos.full_rounds import KINDS, run

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]


def test_nothing_is_lost_and_all_goes_on_by_itself_when_disks_are_full(loop_devices: None) -> None:
    assert run(KINDS, rounds=4, records_per_round=300).violations == []
