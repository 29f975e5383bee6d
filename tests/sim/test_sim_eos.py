"""A slice of the seeds of exactly once. `ropewalk-sim --eos` runs as many as there is time for."""

import os
import subprocess
import sys

import pytest

from ropewalk.sim.eos.scenario import FAULTS_MIN, OPERATIONS_MIN, WORK_S, run_seed


@pytest.mark.parametrize("seed", range(6))
def test_exactly_once_over_a_cluster_under_faults(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.violations == ()
    assert outcome.simulated_s >= WORK_S
    assert outcome.operation_count >= OPERATIONS_MIN
    assert outcome.fault_count >= FAULTS_MIN


def test_a_run_gives_the_same_trace_under_any_hash_seed() -> None:
    lines = {_verbose_line(hash_seed) for hash_seed in ("0", "random")}
    assert len(lines) == 1


def _verbose_line(hash_seed: str) -> str:
    command = [sys.executable, "-m", "ropewalk.sim.main", "--eos", "--seeds", "3", "--verbose"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[0]
