"""A slice of the seeds at the level of cores. `ropewalk-sim --cores` runs as many as there is time for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk.sim.runs.cores.scenario import FAULTS_MIN, OPERATIONS_MIN, WORK_S, run_seed

MUTANTS = sorted((Path(__file__).parent.parent / "mutants" / "cores").glob("*.patch"))


TWO_ROTTEN_COPIES = 420
"""The last two copies in sync were rotten: more than any rule can make up for, so the nemesis leaves it."""

ELECTED_BEFORE_ITS_SYNC = 297
"""Who was elected out of sync had copied all that was promised, and not synced it yet: only what it vouches for is kept."""

MOVED_AWAY_UNHEARD = 743
"""A leader promised with three copies by the set in sync that it knew. A move was complete, which left two of them."""

MINIMUM_RAISED_WITH_FEWER_IN_SYNC = 814
"""A leader heard at once of a set in sync that was smaller and of a minimum that was larger. It took the one before the other."""

LOST_UNHEARD = 4257
"""A leader that was paused promised what another disk had held, which was lost and replaced meanwhile."""

LET_IN_AFTER_ITS_DISK_WAS_LOST = 1137
"""The leader's copy was rotten, and the one let in, by what had been heard of it before, had lost its disk: two of three at a time."""

FOUND = (
    TWO_ROTTEN_COPIES,
    ELECTED_BEFORE_ITS_SYNC,
    MOVED_AWAY_UNHEARD,
    MINIMUM_RAISED_WITH_FEWER_IN_SYNC,
    LOST_UNHEARD,
    LET_IN_AFTER_ITS_DISK_WAS_LOST,
)


@pytest.mark.parametrize("seed", [*range(60), *FOUND])
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


def test_there_is_a_mutant_for_every_rule() -> None:
    wanted = {
        "append_retried",
        "empty_disk_trusted",
        "high_watermark_below_minimum",
        "high_watermark_without_proposed",
        "leads_before_registering",
        "lease_as_proof",
        "log_end_counted",
        "minimum_within_an_epoch",
        "no_broker_epoch",
        "no_epoch_fencing",
        "no_expand_rule",
        "orphans_by_stale_image",
        "own_file_counts",
        "part_of_a_change_seen",
        "same_epoch_again",
        "truncate_to_high_watermark",
        "trusted_by_present_setting",
        "unclean_restart_trusted",
    }
    assert wanted <= {patch.stem for patch in MUTANTS}


@pytest.mark.parametrize("patch", MUTANTS, ids=[patch.stem for patch in MUTANTS])
def test_a_mutant_still_fits_the_source(patch: Path) -> None:
    subprocess.run(["git", "apply", "--check", str(patch)], cwd=patch.parents[3], check=True)
