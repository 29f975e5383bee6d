"""A short slice of the rounds; `tests/chaos/run` does as many as one has patience for."""

import pytest

from tests.chaos.rounds import run

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]


def test_nothing_acknowledged_is_lost_when_the_node_is_stopped_and_it_stops_in_order() -> None:
    assert run("stop", rounds=2, records_per_round=500).violations == []


def test_nothing_acknowledged_is_lost_when_the_node_is_killed() -> None:
    assert run("kill", rounds=3, records_per_round=500).violations == []


def test_nothing_acknowledged_is_lost_in_a_power_cut_on_a_file_system_that_forgets(fuse: None) -> None:
    assert run("fuse", rounds=3, records_per_round=500).violations == []


def test_nothing_acknowledged_is_lost_in_a_power_cut_on_ext4(loop_devices: None) -> None:
    assert run("ext4", rounds=3, records_per_round=500).violations == []


def test_a_node_that_does_not_wait_for_the_disk_is_found_out(fuse: None) -> None:
    totals = run("fuse", rounds=3, settings=("flush=os",))
    assert any("acknowledged records are there" in violation for violation in totals.violations)
