"""A slice of the seeds of exactly once. `ropewalk-sim --eos` runs as many as there is time for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk.sim.runs.eos.scenario import FAULTS_MIN, OPERATIONS_MIN, WORK_S, run_seed

MUTANTS = sorted((Path(__file__).parent.parent / "mutants" / "eos").glob("*.patch"))

ENDED_ON_A_FULL_DISK = 130
"""The disk of a coordinator fills up between the last marker of a transaction and the record of its end."""

NOBODY_COUNTS, BETWEEN_HISTORIES = 124, 144
"""A topic that did not survive what is done to disks, and a consumer between histories that share less than the leader's answer says."""


@pytest.mark.parametrize("seed", [*range(8), NOBODY_COUNTS, ENDED_ON_A_FULL_DISK, BETWEEN_HISTORIES])
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


def test_there_is_a_mutant_for_every_promise() -> None:
    wanted = {
        "answer_from_uncommitted_state",
        "client_believes_every_leader",
        "client_commits_in_next_generation",
        "client_drops_what_was_gathered",
        "client_forgets_lone_marker",
        "client_position_past_unreadable",
        "marker_again_refused",
        "older_marker_accepted",
        "producers_lost_at_failover",
        "stable_beyond_open",
        "stale_generation_in_cluster",
        "zero_for_unknown_offset",
    }
    assert wanted <= {patch.stem for patch in MUTANTS}


@pytest.mark.parametrize("patch", MUTANTS, ids=[patch.stem for patch in MUTANTS])
def test_a_mutant_still_fits_the_source(patch: Path) -> None:
    subprocess.run(["git", "apply", "--check", str(patch)], cwd=patch.parents[3], check=True)
