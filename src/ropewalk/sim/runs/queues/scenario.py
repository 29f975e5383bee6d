"""One seed of queues at the level of cores: from empty logs to a verdict.

A run has two or three queues, one of which takes the dead letters of another. They are used while one leader follows the other; then nobody meddles any more,
and within a bounded time everything must have been given out and deleted.
"""

import random
from typing import Final

from ropewalk.queues.deduplication import Deduplication
from ropewalk.queues.settings import DeadLetterTarget, QueueSettings
from ropewalk.queues.snapshot_codec import encode_snapshot
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace
from ropewalk.sim.runs.cores.judge import Violation
from ropewalk.sim.runs.cores.queue import EventQueue
from ropewalk.sim.runs.outcome import Outcome, complaint_of
from ropewalk.sim.runs.queues.book import Book
from ropewalk.sim.runs.queues.crowd import Crowd, Line, Meddler, Receiver, Sender
from ropewalk.sim.runs.queues.host import Around, Numbers, QueueHost, replayed
from ropewalk.sim.runs.queues.movers import Mover
from ropewalk.sim.runs.queues.queue_log import Entry, QueueLog
from ropewalk.sim.runs.queues.sometimes import EXPECTED
from ropewalk.sim.runs.queues.tasks import TaskBoard, TaskRunner

WORK_S: Final = 60
QUIET_S: Final = 320
"""Longer than ids are remembered."""

REST_S: Final = 90
"""Time enough for every deadline that was set, late as changes of leader make it, and for what lies behind it in its group."""

OPERATIONS_MIN: Final = 100
CHANGES_MIN: Final = 2
SKEW_MS_MAX: Final = 95_000
"""How far a clock is from the right time, at most. Two may differ by twice as much, which leaves a part of the five minutes of deduplication to judge."""

SECOND_US: Final = 1_000_000


def run_seed(seed: int) -> Outcome:
    scenario = Scenario(seed)
    complaint = complaint_of(scenario.play, Violation)
    at_s = scenario.queue.now_us / SECOND_US
    return Outcome(
        seed,
        scenario.trace.hexdigest(),
        at_s,
        scenario.queue.done_count,
        scenario.crowd.operation_count,
        scenario.change_count,
        dict(sorted(scenario.sometimes.counts.items())),
        () if complaint is None else (f"{at_s:.3f} s: {complaint}",),
        () if complaint is None else tuple(" ".join(map(str, facts)) for facts in scenario.trace.recent),
    )


class Partition:
    """A queue of one partition, and whoever leads it."""

    def __init__(self, name: str, settings: QueueSettings, trace: Trace, sometimes: Sometimes) -> None:
        self.settings = settings
        self.book = Book(name, settings, spread_ms=2 * SKEW_MS_MAX + 1_000, sometimes=sometimes)
        self.log = QueueLog(name, self._on_committed)
        self.line = Line(name, settings)
        self.clean_count = 0
        self._trace = trace

    def _on_committed(self, offset: int, entry: Entry) -> None:
        told = ", ".join(str(fact) for fact in entry.facts)
        self._trace.note(entry.appended_at_ms, self.log.name, offset, entry.number, entry.group, told)
        self.book.commit(offset, entry)


class Scenario:
    def __init__(self, seed: int) -> None:
        rng = self._rng = random.Random(f"{seed}/queues")
        self.queue = EventQueue()
        self.trace = Trace(recent_count=30)
        self.sometimes = Sometimes(EXPECTED)
        self.change_count = 0
        self._is_calm = False
        self._around = Around(
            self.queue,
            Numbers(),
            self.trace,
            self.sometimes,
            snapshot_share=rng.choice((0.0, 0.02, 0.1)),
            commit_us=rng.choice(((300, 3_000), (1_000, 40_000), (5_000, 400_000))),
            read_us=rng.choice(((10, 500), (200, 20_000), (1_000, 90_000))),
        )
        self.crowd = Crowd(
            self._around,
            random.Random(f"{seed}/clients"),
            loss_share=rng.choice((0.0, 0.01, 0.05)),
            skew_ms_max=rng.choice((0, 5_000, SKEW_MS_MAX)),
        )
        self._partitions = {each.log.name: each for each in self._made(rng)}
        for partition in self._partitions.values():
            partition.book.on_copy = self._on_copy
        self._receivers: list[Receiver] = []
        self._board: TaskBoard | None = None
        """None: nobody brings dead letters back in this run."""
        tasks = random.Random(f"{seed}/tasks")
        if tasks.random() < 0.6:
            self._board = TaskBoard(self.crowd, tasks, pause_us=tasks.choice((2, 6, 15)) * SECOND_US)

    def play(self) -> None:
        rng = self._rng
        for partition in self._partitions.values():
            self._lead(partition, skew_ms=self._skew_ms())
        self._run_for_s(1)
        self._start_clients()
        self.queue.after(rng.randint(0, 3 * SECOND_US), self._meddle, rng.choice((1_000, 4_000, 10_000)))
        if rng.random() < 0.15:
            self._run_for_s(WORK_S / 2)
            self.crowd.is_working = False
            self._run_for_s(QUIET_S)
            self.crowd.is_working = True
        self._run_for_s(WORK_S)
        self._is_calm = True
        self.crowd.loss_share = 0.0
        for partition in self._partitions.values():
            for host in partition.line.deposed:
                host.stop()
        self.crowd.is_draining = True
        self._await_rest()
        if self.crowd.operation_count < OPERATIONS_MIN or self.change_count < CHANGES_MIN:
            raise Violation("idle", f"{self.crowd.operation_count} operations, {self.change_count} changes")

    def _made(self, rng: random.Random) -> list[Partition]:
        is_fifo = rng.random() < 0.5
        dead_letters = DeadLetterTarget(rng.choice((1, 2, 3)), bytes(16), 0) if rng.random() < 0.7 else None
        source = QueueSettings(
            is_fifo=is_fifo,
            is_fair=not is_fifo and rng.random() < 0.3,
            delay_ms=rng.choice((0, 0, 0, 1_500)) if is_fifo else 0,
            dead_letters=dead_letters,
            retry_backoff_ms=rng.choice((0, 0, 300)),
            retry_backoff_ms_max=2_000,
            deduplicates_by_group=rng.random() < 0.3,
            in_flight_max=rng.choice((5, 120_000, 120_000)),
            window_messages_max=rng.choice((40, 120_000)),
        )
        kinds = {"source": source, "dead": QueueSettings(is_fifo=is_fifo)}
        return [Partition(name, each, self.trace, self.sometimes) for name, each in kinds.items()]

    def _on_copy(self, name: str, number: int, at_ms: int) -> None:
        self._partitions[name].book.add_copy(number, at_ms)

    def _lead(self, partition: Partition, *, skew_ms: int) -> None:
        term = partition.log.term.number
        rng = random.Random(f"{self._rng.random()}/{partition.log.name}/{term}")
        host = QueueHost(
            self._around, partition.log, partition.book, partition.settings, rng, skew_ms=skew_ms
        )
        partition.line.leader = host
        if partition.settings.dead_letters is not None:
            Mover(self.crowd, host, self._partitions["dead"].line, rng)
        elif partition.log.name == "dead" and self._board is not None:
            Mover(self.crowd, host, self._partitions["source"].line, rng)
            TaskRunner(self.crowd, host, self._board, rng)

    def _start_clients(self) -> None:
        rng = self._rng
        pause_us = rng.choice((250_000, 600_000, 1_500_000))
        delays_ms = rng.choice(((0,), (0, 0, 700), (0, 3_000, 9_000)))
        visibilities_ms = rng.choice(((300, 2_000), (2_000, 9_000), (50, 500)))
        for name, partition in self._partitions.items():
            for number in range(rng.randint(1, 3) if name == "source" else 1):
                sender_pause_us = pause_us if name == "source" else 3_000_000
                Sender(
                    self.crowd,
                    partition.line,
                    f"{name}-{number}",
                    pause_us=sender_pause_us,
                    delays_ms=delays_ms,
                )
            for _ in range(rng.randint(1, 4)):
                self._receivers.append(
                    Receiver(self.crowd, partition.line, pause_us=pause_us, visibilities_ms=visibilities_ms)
                )
            if rng.random() < 0.35:
                Meddler(self.crowd, partition.line, pause_us=rng.choice((5, 15)) * SECOND_US)

    def _meddle(self, pause_ms: int) -> None:
        """Let another one lead, of one of the queues."""
        if self._is_calm:
            return
        rng = self._rng
        partition = rng.choice(list(self._partitions.values()))
        draw = rng.random()
        leader = partition.line.leader
        assert leader is not None
        if draw < 0.3 and leader.hand_over():
            leader.stop()
            self.sometimes.note("a leader handed over")
            self._change(partition, kept=1.0)
        elif draw < 0.7:
            leader.stop()
            self.sometimes.note("a leader crashed")
            self._change(partition, kept=rng.choice((0.0, 1.0, rng.random())))
        else:
            self.sometimes.note("a leader was deposed and went on")
            partition.line.deposed = [each for each in partition.line.deposed if not each.is_stopped]
            partition.line.deposed.append(leader)
            self.queue.after(rng.randint(50_000, 4 * SECOND_US), leader.stop)
            self._change(partition, kept=rng.choice((0.0, 1.0, rng.random())))
        self.queue.after(rng.randint(1, 2 * pause_ms) * 1_000, self._meddle, pause_ms)

    def _change(self, partition: Partition, *, kept: float) -> None:
        rng = self._rng
        before = partition.line.leader
        assert before is not None
        self.change_count += 1
        lost = partition.log.change_leader(kept)
        if lost:
            is_part = len(partition.log.term.entries) > len(partition.log.committed)
            self.sometimes.note("a part of a tail was lost" if is_part else "a tail was lost")
        skew_ms = self._skew_ms()
        if skew_ms - before.skew_ms < -60_000:
            self.sometimes.note("a leader's clock was minutes behind its predecessor's")
        elif skew_ms - before.skew_ms > 60_000:
            self.sometimes.note("a leader's clock was minutes ahead of its predecessor's")
        self.trace.note(self.queue.now_ms, partition.log.name, "term", partition.log.term.number, skew_ms)
        partition.line.leader = None
        absence_us = rng.choice((1_000, 50_000, 2 * SECOND_US))
        self.queue.after(absence_us, self._lead_after, partition, partition.log.term.number, skew_ms)
        partition.line.leader = before

    def _lead_after(self, partition: Partition, term: int, skew_ms: int) -> None:
        if partition.log.term.number == term:
            self._lead(partition, skew_ms=skew_ms)

    def _skew_ms(self) -> int:
        return self._rng.choice((0, self._rng.randint(-SKEW_MS_MAX, SKEW_MS_MAX)))

    def _await_rest(self) -> None:
        """A queue that gives out few at a time, and commits slowly, may be long about it: only who stands still is blamed."""
        fewest_count, end_us = None, 0
        while waiting := [
            each for partition in self._partitions.values() for each in partition.book.waiting()
        ]:
            if fewest_count is None or len(waiting) < fewest_count:
                fewest_count, end_us = len(waiting), self.queue.now_us + REST_S * SECOND_US
            elif self.queue.now_us > end_us:
                raise Violation("Q1", f"{len(waiting)} messages are never given out, the first {waiting[:3]}")
            self._run_for_s(1)
        self.crowd.is_working = False
        self._run_for_s(5)
        if self._board is not None and self._board.open:
            raise Violation("L", "a move task never ends, although there is nothing left to move")
        for partition in self._partitions.values():
            self._check_rest(partition)

    def _check_rest(self, partition: Partition) -> None:
        name, leader = partition.log.name, partition.line.leader
        assert leader is not None
        if leader.core is None:
            raise Violation("L1", f"{name} is not led")
        figures = leader.core.figures()
        for what in ("in_flight", "delayed", "resting", "dying", "moving", "waiting"):
            if count := getattr(figures, f"{what}_count"):
                raise Violation("L", f"{name}: {count} are {what}, although everything is deleted")
        leader.hand_over()
        state = replayed(leader.term.entries, partition.settings).state
        for each in (
            state,
            leader.core.state,
        ):  # a leader knows when ids came, the log only what doors stamped
            each.deduplication = Deduplication()
        if encode_snapshot(state) != encode_snapshot(leader.core.state):
            raise Violation("R", f"{name}: the log tells another state than its leader has")

    def _run_for_s(self, duration_s: float) -> None:
        self.queue.run_until(self.queue.now_us + int(duration_s * SECOND_US))
