"""A slice of the seeds, on the real node. `ropewalk-sim` runs as many as there is time for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk.sim.runs.node.boot import boot
from ropewalk.sim.runs.node.scenario import FAULTS_MIN, OPERATIONS_MIN, WORK_S, run_seed

_MUTANTS = Path(__file__).parent.parent / "mutants"
MUTANTS = sorted(_MUTANTS.glob("*.patch"))
MUTANTS_OF_KERNEL_SYNCS = sorted((_MUTANTS / "kernel-syncs").glob("*.patch"))
MUTANTS_OF_NAMED_TESTS = sorted((_MUTANTS / "named-tests").glob("*.patch"))


@pytest.mark.parametrize("seed", [*range(12), 242, 478, 480, 598, 896])
def test_nothing_promised_is_lost(seed: int) -> None:
    outcome = run_seed(seed, boot)
    assert outcome.violations == ()
    assert outcome.simulated_s >= WORK_S
    assert outcome.operation_count >= OPERATIONS_MIN
    assert outcome.fault_count >= FAULTS_MIN


@pytest.mark.parametrize("seed", range(4))
def test_nothing_promised_is_lost_where_the_kernel_syncs_by_itself(seed: int) -> None:
    outcome = run_seed(seed, boot, kernel_syncs=True)
    assert outcome.violations == ()
    assert outcome.sometimes["files were synced without a thread"] > 0


def test_the_real_node_gives_the_same_trace_under_any_hash_seed() -> None:
    lines = {_verbose_line(hash_seed) for hash_seed in ("0", "1", "random")}
    assert len(lines) == 1
    assert run_seed(5, boot).digest in lines.pop()


def _verbose_line(hash_seed: str) -> str:
    command = [sys.executable, "-m", "ropewalk.sim.main", "--seeds", "5", "--verbose"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[0]


def test_there_is_a_mutant_for_every_promise() -> None:
    wanted = {
        "ack_before_fsync",
        "answer_before_commit",
        "cache_believed_after_failed_sync",
        "clock_followed",
        "compaction_drops_last_value",
        "compaction_drops_live_tombstone",
        "consumer_above_durable",
        "failed_sync_forgotten",
        "fenced_instance_commits",
        "index_over_log",
        "producers_not_rebuilt",
        "recovery_stops_early",
        "rename_without_sync",
        "silent_cut",
        "stale_generation_commits",
        "state_survives_failed_append",
        "unknown_offset_is_zero",
        "write_back_error_shared",
    }
    assert wanted <= {patch.stem for patch in MUTANTS}


def test_there_is_a_mutant_for_every_promise_of_syncs_without_a_thread() -> None:
    wanted = {
        "end_noted_after_the_sync",
        "failed_file_ignored",
        "part_taken_for_whole",
        "reported_before_its_event",
    }
    assert wanted <= {patch.stem for patch in MUTANTS_OF_KERNEL_SYNCS}


@pytest.mark.parametrize("patch", MUTANTS_OF_NAMED_TESTS, ids=lambda patch: Path(patch).stem)
def test_a_mutant_that_a_test_notices_names_one_that_is_there(patch: Path) -> None:
    (named,) = (line for line in patch.read_text().splitlines() if line.startswith("Noticed by "))
    path, _, function = named.removeprefix("Noticed by ").partition("::")
    assert f"def {function}(" in (_MUTANTS.parent.parent / path).read_text()


@pytest.mark.parametrize(
    "patch",
    [*MUTANTS, *MUTANTS_OF_KERNEL_SYNCS, *MUTANTS_OF_NAMED_TESTS],
    ids=lambda patch: Path(patch).stem,
)
def test_a_mutant_still_fits_the_source(patch: Path) -> None:
    root = _MUTANTS.parent.parent
    subprocess.run(["git", "apply", "--check", str(patch)], cwd=root, check=True)
