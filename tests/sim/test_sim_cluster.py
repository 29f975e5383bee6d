"""A slice of the seeds on clusters of whole nodes. `ropewalk-sim --cluster` runs as many as there is time for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk.sim.runs.cluster.scenario import FAULTS_MIN, OPERATIONS_MIN, WORK_S, run_seed

MUTANTS = sorted((Path(__file__).parent.parent / "mutants" / "cluster").glob("*.patch"))

STARTED_NEXT_WEEK = 104
"""A node started while its clock was ten days ahead, and took all records for older than seven days."""

EXPIRED_BY_A_FAST_CLOCK = 142
"""Records expired a little early, by a clock that runs ahead of the clients'."""

MISSED_A_DELETION = 287
"""A replica was away while the others removed values together with their deletions, kept the values, and led."""

COMPACTED_BY_ONE = 384
"""A copy had removed values together with their deletion when another still had all of them."""

MANY_RECORDS_AT_ONCE = 14
"""A change of many partitions, whose records were each asked for their level in one turn."""

HELD_DOWN = 332
"""Two nodes were held down until the work was over, while faults kept the third busy."""

FIRST_SEGMENT_LOST = 464
"""The first segment of a log was lost, and the one behind it lies beyond the high watermark, where retention must not go."""

PUT_BACK_WHILE_WATCHED = 481
"""etcd was put back under nodes that ran on, and the new history came to begin an append where theirs had ended."""

SLICE = (*range(7), *range(8, 11))
"""Turns of the loop are weighed in 2, as they are in the one with many records; in 7 as well, which takes as long as ten others."""


@pytest.mark.parametrize(
    "seed",
    [
        *SLICE,
        STARTED_NEXT_WEEK,
        EXPIRED_BY_A_FAST_CLOCK,
        MISSED_A_DELETION,
        COMPACTED_BY_ONE,
        HELD_DOWN,
        MANY_RECORDS_AT_ONCE,
        FIRST_SEGMENT_LOST,
        PUT_BACK_WHILE_WATCHED,
    ],
)
def test_a_cluster_of_whole_nodes_loses_nothing(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.violations == ()
    assert outcome.simulated_s >= WORK_S
    assert outcome.operation_count >= OPERATIONS_MIN
    assert outcome.fault_count >= FAULTS_MIN


@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_is_lost_while_nodes_of_two_levels_run_together(seed: int) -> None:
    """As with `--mixed-levels`; these seeds have nodes of one level otherwise."""
    outcome = run_seed(seed, mixed_levels=True)
    assert outcome.violations == ()
    assert outcome.sometimes["a node changed its version"]


def test_a_cluster_gives_the_same_trace_under_any_hash_seed() -> None:
    lines = {_verbose_line(hash_seed) for hash_seed in ("0", "random")}
    assert len(lines) == 1
    assert run_seed(3).digest in lines.pop()


def _verbose_line(hash_seed: str) -> str:
    command = [sys.executable, "-m", "ropewalk.sim.main", "--cluster", "--seeds", "3", "--verbose"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[0]


def test_there_are_mutants_for_what_only_whole_nodes_show() -> None:
    wanted = {
        "connection_without_turns",
        "damage_forgotten",
        "deletion_answered_early",
        "deletions_not_told",
        "epochs_not_compared",
        "failed_change_left_open",
        "history_not_compared",
        "level_raised_with_node_missing",
        "log_end_told",
        "marks_not_told",
        "memory_trusted",
        "newer_record_before_level",
        "no_space_is_refusal",
        "older_version_let_in",
        "put_back_trusted",
        "quorum_counts_majority",
        "recorded_start_ignored",
        "route_missing",
        "routed_to_last_replica",
        "seat_given_up",
        "short_write_kept",
        "start_not_recorded",
        "strays_by_stale_image",
    }
    assert wanted <= {patch.stem for patch in MUTANTS}


@pytest.mark.parametrize("patch", MUTANTS, ids=[patch.stem for patch in MUTANTS])
def test_a_mutant_still_fits_the_source(patch: Path) -> None:
    subprocess.run(["git", "apply", "--check", str(patch)], cwd=patch.parents[3], check=True)
