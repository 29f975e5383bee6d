"""Whole clusters in the simulator: a few seeds, and that the judge would notice."""

import pytest

from ropewalk.sim.whole.scenario import run_seed
from ropewalk.sim.whole.verdict import Told, judge

PLACE = ("t", 0)


@pytest.mark.parametrize("seed", [3, 5])
def test_nothing_that_a_cluster_promised_is_broken(seed: int) -> None:
    outcome = run_seed(seed)
    assert not outcome.violations
    assert outcome.fault_count >= 3


def test_the_same_seed_gives_the_same_run() -> None:
    assert run_seed(4).digest == run_seed(4).digest


@pytest.mark.parametrize(
    ("acknowledged", "there", "kinds"),
    [
        pytest.param({0: b"a/0"}, {0: b"a/0"}, [], id="as it was said"),
        pytest.param({0: b"a/0"}, {}, ["lost"], id="gone"),
        pytest.param({0: b"a/0"}, {0: b"b/0"}, ["inconsistent"], id="another in its place"),
        pytest.param({}, {0: b"a/0", 1: b"a/0"}, ["duplicate"], id="twice"),
        pytest.param({}, {0: b"a/1", 1: b"a/0"}, ["reordered"], id="in another order"),
        pytest.param({}, {0: b"a/0", 1: b"b/0", 2: b"a/1"}, [], id="two senders between each other"),
    ],
)
def test_the_judge_notices(acknowledged: dict[int, bytes], there: dict[int, bytes], kinds: list[str]) -> None:
    told = Told()
    for offset, value in acknowledged.items():
        told.on_acknowledged(PLACE, offset, value)
    assert [violation.kind for violation in judge(told, {PLACE: there})] == kinds


def test_two_records_read_at_one_offset_are_noticed() -> None:
    told = Told()
    told.on_read(PLACE, 7, b"a/0")
    told.on_read(PLACE, 7, b"b/0")
    assert [violation.kind for violation in judge(told, {PLACE: {7: b"a/0"}})] == ["inconsistent"]
