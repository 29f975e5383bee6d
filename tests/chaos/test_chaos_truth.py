"""A slice of the truth table; `tests/chaos/run-truth` makes the whole."""

import shutil
from pathlib import Path

import pytest

from tests.chaos.truth import FAULTS, table, written

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not here"),
]

SLICE = ["controller killed", "below minimum", "clock off"]
PATIENCE_S = 60.0
"""What is told at all is asked here; how soon, on a quiet machine, is what the program prints."""


def test_a_fault_is_told_by_all_who_watch_and_by_none_when_it_is_healed(tmp_path: Path) -> None:
    rows = table(tmp_path, SLICE, told_within_s=PATIENCE_S, progress=print)
    assert [row.fault for row in rows] == SLICE
    assert all(row.holds for row in rows), "\n".join(map(written, rows))


def test_every_fault_of_the_table_has_a_name_of_its_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 12
