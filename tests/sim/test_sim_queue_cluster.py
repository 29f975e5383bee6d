"""A slice of the seeds of queues on clusters, and their judge. `ropewalk-sim --queue-cluster` runs as many as there is time for."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ropewalk.sim.runs.queue_cluster.ledger import Ledger, Moment, Seen
from ropewalk.sim.runs.queue_cluster.lives import Life, Lives
from ropewalk.sim.runs.queue_cluster.scenario import CALM_S, OPERATIONS_MIN, WORK_S, run_seed
from ropewalk.sim.runs.queue_cluster.sorts import QueueSort

MUTANTS = sorted((Path(__file__).parent.parent / "mutants" / "queue-cluster").glob("*.patch"))


@pytest.mark.parametrize("seed", range(4))
def test_queues_on_a_cluster_under_faults(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.violations == ()
    assert outcome.simulated_s >= CALM_S + WORK_S
    assert outcome.operation_count >= OPERATIONS_MIN


def test_queues_on_a_cluster_give_the_same_trace_under_any_hash_seed() -> None:
    lines = {_verbose_line(hash_seed) for hash_seed in ("0", "random")}
    assert len(lines) == 1


def _verbose_line(hash_seed: str) -> str:
    command = [sys.executable, "-m", "ropewalk.sim.main", "--queue-cluster", "--seeds", "2", "--verbose"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[0]


def test_there_is_a_mutant_for_every_promise_of_hosts_credits_and_logs() -> None:
    wanted = {
        "acquire_without_credit",
        "crossing_delivery_counted",
        "fifo_given_before_commit",
        "fifo_released_with_front_end",
        "log_cut_below_snapshot",
        "settled_before_commit",
        "snapshot_not_used",
    }
    assert {path.stem for path in MUTANTS} == wanted


@pytest.mark.parametrize("patch", MUTANTS, ids=[patch.stem for patch in MUTANTS])
def test_a_mutant_of_queues_on_clusters_still_fits_the_source(patch: Path) -> None:
    subprocess.run(["git", "apply", "--check", str(patch)], cwd=patch.parents[3], check=True)


class OneLeader:
    """Lives in which one has led all the time, or in which nobody can tell who did."""

    def __init__(self, *, is_certain: bool) -> None:
        core: Any = None
        self._life = Life("node0", core, 0, 1_000) if is_certain else None

    def count(self, _place: object) -> int:
        return 1

    def sole(self, _place: object, _asked_s: float, _answered_s: float) -> Life | None:
        return self._life


def a_ledger(
    *, is_fifo: bool = False, is_certain: bool = True, is_calm: bool = False, limit: int = 0
) -> Ledger:
    lives: Any = OneLeader(is_certain=is_certain)
    sort = QueueSort(name="q.fifo" if is_fifo else "q", receives_max=limit)
    ledger = Ledger(sort, lives, lambda _: None, is_calm=lambda _: is_calm)
    for number, text in enumerate(("a1", "a2", "b1")):
        ledger.on_send(text, text[0], at_s=number, delay_s=0)
        ledger.on_sent(text, f"id-{text}", at_s=number + 0.5)
    return ledger


OFFSETS = {"a1": 0, "a2": 1, "b1": 2, "twin": 3}


def receive(
    ledger: Ledger, *texts: str, at_s: float, count: int = 1, visibility_s: float = 10, offset: int = 0
) -> Ledger:
    seen = [
        Seen(text, f"{text}@{at_s}", f"id-{text}", 0, OFFSETS.get(text, 9) + offset, count) for text in texts
    ]
    ledger.on_received(seen, Moment(at_s, at_s + 0.1, "node0"), visibility_s=visibility_s)
    return ledger


def delete(ledger: Ledger, text: str, *, at_s: float) -> Ledger:
    ledger.on_delete_asked(text)
    ledger.on_deleted(text, f"{text}@10", at_s=at_s)
    return ledger


def ask_delete(ledger: Ledger, text: str) -> Ledger:
    """Without an answer."""
    ledger.on_delete_asked(text)
    return ledger


def finish(ledger: Ledger) -> set[str]:
    """The rules that are broken when the rest has been received and deleted."""
    for text in ("a1", "a2", "b1"):
        if not ledger.messages[text].may_be_deleted:
            receive(ledger, text, at_s=100, count=ledger.messages[text].seen_count + 1)
            delete(ledger, text, at_s=100.5)
    ledger.conclude()
    return {violation.kind for violation in ledger.violations}


def a_twin(ledger: Ledger, message_id: str) -> Ledger:
    ledger.on_send("twin", "a", at_s=5, delay_s=0, twin_of="a1")
    ledger.on_sent("twin", message_id, at_s=5.5)
    return ledger


def purged(ledger: Ledger) -> Ledger:
    ledger.on_purge_asked()
    ledger.on_purged(asked_s=12, at_s=12.1)
    return ledger


def extended(ledger: Ledger, *, is_answered: bool) -> Ledger:
    receive(ledger, "a1", at_s=10, visibility_s=60)
    held = ledger.on_visibility_asked("a1", "a1@10", at_s=11, visibility_s=1)
    assert held is not None
    if not is_answered:
        held = ledger.on_visibility_asked("a1", "a1@10", at_s=11.5, visibility_s=60)
        assert held is not None
        ledger.on_visibility_changed(held, at_s=11.5, visibility_s=60, is_refused=False)
    return ledger


Deeds = Callable[[Ledger], object]


@pytest.mark.parametrize(
    ("deeds", "broken"),
    [
        pytest.param(lambda q: q, set(), id="nothing but the end"),
        pytest.param(lambda q: receive(q, "a1", "a2", at_s=10), set(), id="a run from the head"),
        pytest.param(lambda q: receive(q, "a2", at_s=10), {"Q3"}, id="behind one that is there"),
        pytest.param(lambda q: receive(q, "a2", "a1", at_s=10), {"Q3"}, id="out of order"),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), receive(q, "a2", at_s=11)],
            {"Q3"},
            id="behind one in flight",
        ),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), delete(q, "a1", at_s=11), receive(q, "a2", at_s=12)],
            set(),
            id="behind one that is deleted",
        ),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), receive(q, "a1", at_s=15, count=2)], {"Q2"}, id="too early"
        ),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), receive(q, "a1", at_s=21, count=2)],
            set(),
            id="after its time",
        ),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), receive(q, "a1", at_s=21, count=1)], {"A"}, id="not counted"
        ),
        pytest.param(
            lambda q: [extended(q, is_answered=True), receive(q, "a1", at_s=13, count=2)],
            set(),
            id="shown by a change that nobody answered",
        ),
        pytest.param(
            lambda q: [extended(q, is_answered=False), receive(q, "a1", at_s=13, count=2)],
            set(),
            id="shown by a change that arrives behind a later one",
        ),
        pytest.param(lambda q: a_twin(q, "id-a1"), set(), id="a duplicate"),
        pytest.param(lambda q: a_twin(q, "id-other"), {"Q4"}, id="a duplicate with an id of its own"),
        pytest.param(
            lambda q: [a_twin(q, "id-a1"), receive(q, "a1", "a2", "twin", at_s=10)],
            {"Q4", "A"},
            id="a duplicate that comes",
        ),
    ],
)
def test_the_ledger_judges_fifo_queues(deeds: Deeds, broken: set[str]) -> None:
    ledger = a_ledger(is_fifo=True)
    deeds(ledger)
    assert finish(ledger) == broken


@pytest.mark.parametrize(
    ("deeds", "is_certain", "broken"),
    [
        pytest.param(lambda q: receive(q, "a2", at_s=10), True, set(), id="in any order"),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), receive(q, "a1", at_s=15, count=2)],
            True,
            {"Q2"},
            id="early from one leader",
        ),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), receive(q, "a1", at_s=15)],
            False,
            set(),
            id="early from another",
        ),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), delete(q, "a1", at_s=11), receive(q, "a1", at_s=30)],
            True,
            {"Q2"},
            id="after its delete",
        ),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), delete(q, "a1", at_s=11), receive(q, "a1", at_s=30)],
            False,
            set(),
            id="from a leader that cannot know of its delete",
        ),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), ask_delete(q, "a1"), receive(q, "a1", at_s=30)],
            True,
            set(),
            id="after a delete without an answer",
        ),
        pytest.param(lambda q: [purged(q), receive(q, "a1", at_s=13)], True, {"Q2"}, id="after a purge"),
        pytest.param(
            lambda q: [receive(q, "a1", at_s=10), receive(q, "a1", at_s=30, count=2, offset=7)],
            True,
            {"Q4"},
            id="twice in the log",
        ),
        pytest.param(lambda q: receive(q, "c1", at_s=10), True, {"A"}, id="what nobody sent"),
    ],
)
def test_the_ledger_judges_standard_queues(deeds: Deeds, is_certain: bool, broken: set[str]) -> None:
    ledger = a_ledger(is_certain=is_certain)
    deeds(ledger)
    assert {violation.kind for violation in ledger.violations} == broken


def test_the_ledger_misses_what_was_acknowledged_and_is_not_there() -> None:
    ledger = a_ledger()
    receive(ledger, "a1", at_s=10)
    ledger.on_delete_asked("a2")
    ledger.on_send("unheard", "a", at_s=5, delay_s=0)
    ledger.conclude()
    assert [str(violation)[:9] for violation in ledger.violations] == ["Q1: q: a1", "Q1: q: b1"]


def test_the_ledger_knows_delays() -> None:
    ledger = a_ledger()
    ledger.on_send("late", "a", at_s=10, delay_s=5)
    receive(ledger, "late", at_s=12)
    assert [violation.kind for violation in ledger.violations] == ["D"]


@pytest.mark.parametrize(
    ("count", "is_calm", "broken"),
    [(1, True, []), (2, True, ["Q5"]), (2, False, [])],
    ids=["", "calm", "fault"],
)
def test_the_ledger_knows_what_a_crossing_delivery_may_not_do(
    count: int, is_calm: bool, broken: list[str]
) -> None:
    ledger = a_ledger(is_calm=is_calm)
    receive(ledger, "a1", at_s=10, count=count)
    assert [violation.kind for violation in ledger.violations] == broken


@pytest.mark.parametrize(("count", "broken"), [(1, ["Q5"]), (3, []), (4, ["Q5"])])
def test_the_ledger_knows_when_a_message_is_a_dead_letter(count: int, broken: list[str]) -> None:
    ledger, lives = a_ledger(limit=2), OneLeader(is_certain=True)
    any_lives: Any = lives
    dead = Ledger(QueueSort(name="dead"), any_lives, lambda _: None, is_calm=lambda _: False)
    dead.sources.append(ledger)
    receive(dead, "a1", at_s=50, count=count)
    assert [violation.kind for violation in ledger.violations] == broken


def test_the_ledger_counts_receives_up_to_the_limit() -> None:
    ledger = a_ledger(is_fifo=True, limit=2)
    for number in range(3):
        receive(ledger, "a1", at_s=10 + 20 * number, count=number + 1)
    assert [violation.kind for violation in ledger.violations] == ["Q5"]


def test_a_leader_is_seen_that_gives_something_out_as_its_first_deed() -> None:
    """Seed 29: it had led for less than the time between two looks, and what it gave was held against the one before it."""
    world = SimpleNamespace(now_s=1.0)
    hosted: list[Any] = []
    machine = SimpleNamespace(name="node0", is_running=True)
    member = SimpleNamespace(machine=machine, serving=SimpleNamespace(queues=hosted))
    members: Any = SimpleNamespace(by_id={0: member})
    any_world: Any = world
    lives = Lives(any_world, members)

    def leads(core: object) -> None:
        name = SimpleNamespace(topic="jobs", partition=0)
        hosted[:] = [SimpleNamespace(core=core, index=0, partition=SimpleNamespace(name=name))]

    leads(object())
    lives.look()
    former = lives.sole(("jobs", 0), 1.0, 1.0)
    world.now_s = 2.0
    leads(object())
    latter = lives.sole(("jobs", 0), 2.0, 2.0)
    assert former is not None
    assert latter is not None
    assert latter is not former
    assert lives.sole(("jobs", 0), 1.0, 2.0) is None, "either may have given it"
