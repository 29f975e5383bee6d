"""A slice of the seeds of queues at the level of cores. `ropewalk-sim --queues` runs as many as there is time for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ropewalk.queues.settings import DeadLetterTarget, QueueSettings
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.runs.cores.judge import Violation
from ropewalk.sim.runs.queues import facts
from ropewalk.sim.runs.queues.book import Book
from ropewalk.sim.runs.queues.queue_log import Entry, QueueLog
from ropewalk.sim.runs.queues.scenario import CHANGES_MIN, OPERATIONS_MIN, WORK_S, run_seed
from ropewalk.sim.runs.queues.sometimes import EXPECTED

MUTANTS = sorted((Path(__file__).parent.parent / "mutants" / "queues").glob("*.patch"))


@pytest.mark.parametrize("seed", range(24))
def test_queues_break_no_rule(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.violations == (), outcome.last_words
    assert outcome.simulated_s >= WORK_S
    assert outcome.operation_count >= OPERATIONS_MIN
    assert outcome.fault_count >= CHANGES_MIN


def test_queues_give_the_same_trace_under_any_hash_seed() -> None:
    lines = {_verbose_line(hash_seed) for hash_seed in ("0", "1")}
    assert len(lines) == 1
    assert run_seed(2).digest in lines.pop()


def _verbose_line(hash_seed: str) -> str:
    command = [sys.executable, "-m", "ropewalk.sim.main", "--queues", "--seeds", "2", "--verbose"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[0]


def test_there_is_a_mutant_for_every_rule_of_queues() -> None:
    wanted = {
        "dead_letter_fresh_sequence",
        "dead_letter_settled_early",
        "deadline_as_wall_time",
        "delay_by_stamp",
        "delete_answered_early",
        "duplicate_answered_early",
        "fifo_acquire_in_memory",
        "given_behind_in_flight",
        "ids_forgotten_at_failover",
        "move_repeated_under_fresh_sequence",
        "moving_shown_after_failover",
        "purge_spares_its_turn",
        "purge_takes_what_follows",
        "repeated_receive_released",
        "rewind_keeps_settled",
        "snapshot_without_holes",
        "task_moves_what_is_given",
        "task_settles_what_it_intends",
    }
    assert {path.stem for path in MUTANTS} == wanted


FIFO = QueueSettings(is_fifo=True, dead_letters=DeadLetterTarget(1, bytes(16), 0))
GIVEN_0 = facts.Given((0,), 1, 1_000, 3_000)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        pytest.param([GIVEN_0, facts.Given((0,), 2, 2_999, 5_000)], "Q2", id="before its time is over"),
        pytest.param(
            [GIVEN_0, facts.Deleted(0), facts.Given((0,), 2, 9_000, 9_999)], "Q2", id="after its delete"
        ),
        pytest.param([facts.Purged(1), GIVEN_0], "Q2", id="after a purge"),
        pytest.param(
            [GIVEN_0, GIVEN_0, facts.Released(0)],
            "Q2",
            id="free for others while the other answer may be held",
        ),
        pytest.param([facts.Given((1,), 1, 1_000, 3_000)], "Q3", id="before another of its group"),
        pytest.param([facts.Given((1, 0), 1, 1_000, 3_000)], "Q3", id="out of order"),
        pytest.param([GIVEN_0, facts.Given((1,), 2, 1_500, 3_000)], "Q3", id="behind one in flight"),
        pytest.param([GIVEN_0, facts.Moved((0,), 1)], "Q5", id="a dead letter that is nowhere"),
        pytest.param([facts.Given((2,), 1, 500, 3_000)], "D", id="before its delay is over"),
        pytest.param([GIVEN_0, facts.Given((0,), 2, 3_000, 5_000)], "", id="again when its time is over"),
        pytest.param(
            [GIVEN_0, facts.Released(0), facts.Given((0,), 2, 1_100, 3_000)], "", id="after a release"
        ),
        pytest.param(
            [GIVEN_0, facts.Deleted(0), facts.Given((1,), 2, 1_100, 3_000)], "", id="behind a deleted one"
        ),
        pytest.param(
            [GIVEN_0, facts.Deleted(0), facts.Rewound(0), facts.Given((0, 1), 2, 1_100, 3_000)],
            "",
            id="after a rewind",
        ),
    ],
)
def test_the_book_knows_what_may_be_given_out(told: list[facts.Fact], rule: str) -> None:
    book = Book("q", FIFO, spread_ms=0, sometimes=Sometimes(EXPECTED))
    for offset, group in enumerate("aab"):
        book.commit(offset, Entry(offset, offset, 900 if group == "b" else 0, group=group))
    book.lives[2].ready_at_ms = 900
    entry = Entry(3, 3, 0, state=b"\x00", facts=tuple(told))
    if not rule:
        book.commit(3, entry)
        return
    with pytest.raises(Violation) as caught:
        book.commit(3, entry)
    assert caught.value.rule == rule


def test_the_book_counts_copies_of_dead_letters() -> None:
    book = Book("q", FIFO, spread_ms=0, sometimes=Sometimes(EXPECTED))
    book.commit(0, Entry(7, 1, 0, group="a"))
    with pytest.raises(Violation, match="after 0 receives"):
        book.add_copy(7, 0)
    with pytest.raises(Violation, match="twice"):
        book.add_copy(7, 0)


def test_the_book_knows_what_may_be_moved() -> None:
    book = Book("q", QueueSettings(), spread_ms=0, sometimes=Sometimes(EXPECTED))
    for offset in range(2):
        book.commit(offset, Entry(offset, offset, 0))
    book.commit(2, Entry(2, 2, 0, state=b"\x00", facts=(GIVEN_0,)))
    book.add_copy(1, 2_000)
    with pytest.raises(Violation, match="while somebody has it"):
        book.add_copy(0, 2_999)


@pytest.mark.parametrize(("second_ms", "is_early"), [(299_000, True), (301_000, False)])
def test_the_book_knows_ids_for_five_minutes(second_ms: int, is_early: bool) -> None:
    book = Book("q", FIFO, spread_ms=0, sometimes=Sometimes(EXPECTED))
    book.commit(0, Entry(1, 1, 0, group="a", deduplication_id="x"))
    again = Entry(2, 2, second_ms, group="a", deduplication_id="x")
    if is_early:
        with pytest.raises(Violation, match="Q4"):
            book.commit(1, again)
    else:
        book.commit(1, again)


def test_a_log_keeps_what_is_committed_and_whole_batches_of_the_rest() -> None:
    log = QueueLog("q", lambda _offset, _entry: None)
    for number, batch in enumerate([1, 2, 2, 3]):
        log.term.append(Entry(number, batch, 0))
    deposed = log.term
    assert log.commit(deposed, 1)
    assert log.change_leader(kept=0.4) == 3, "the half of a batch is none"
    assert not log.commit(deposed, 4), "a deposed leader commits nothing"
    assert [entry.number for entry in log.term.entries] == [0] == [entry.number for entry in log.committed]
