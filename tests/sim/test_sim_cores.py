"""A slice of the seeds at the level of cores. `ropewalk-sim --cores` runs as many as there is time for."""

import os
import subprocess
import sys

import pytest

from ropewalk.sim.cores.scenario import FAULTS_MIN, OPERATIONS_MIN, WORK_S, run_seed


@pytest.mark.parametrize("seed", range(60))
def test_a_cluster_of_cores_breaks_no_rule(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.violations == (), outcome.last_words
    assert outcome.simulated_s >= WORK_S
    assert outcome.operation_count >= OPERATIONS_MIN
    assert outcome.fault_count >= FAULTS_MIN


def test_the_cores_give_the_same_trace_under_any_hash_seed() -> None:
    lines = {_verbose_lines(hash_seed) for hash_seed in ("0", "1", "random")}
    assert len(lines) == 1
    assert run_seed(5).digest in lines.pop()


def _verbose_lines(hash_seed: str) -> str:
    command = [sys.executable, "-m", "ropewalk.sim.main", "--cores", "--seeds", "5..7", "--verbose"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return "\n".join(result.stdout.splitlines()[:3])
