"""Move tasks in a run: somebody begins one now and then, and whoever leads the dead-letter queue brings its messages back to the source.

That a task was begun is a fact of the cluster, and lasts. What it has come to is in the queue's own log, so every new leader begins with what that says.
"""

import random
from typing import Final

from ropewalk.queues.answers import Answer, Moved, ToMove
from ropewalk.queues.commands import BeginTask, EndTask, Move, NextToMove
from ropewalk.queues.errors import QueueError
from ropewalk.queues.state import TaskShare
from ropewalk.sim.runs.queues.crowd import Crowd
from ropewalk.sim.runs.queues.host import QueueHost

LOOK_US: Final = 60_000
SOURCE: Final = bytes([1] * 16)
"""The topic that messages go back to."""


class TaskBoard:
    """The tasks that were begun, as the cluster's facts have them."""

    def __init__(self, crowd: Crowd, rng: random.Random, *, pause_us: int) -> None:
        self._crowd, self._rng, self._pause_us = crowd, rng, pause_us
        self._begun_count = 0
        self.open: bytes = b""
        """The task that has not ended; empty: none."""
        self.is_cancelled = False
        crowd.queue.after(rng.randint(1, pause_us), self._begin)

    def end(self, share: TaskShare) -> None:
        if share.task_id == self.open:
            self._crowd.sometimes.note(f"a move task was {share.ending.lower()}")
            self.open, self.is_cancelled = b"", False

    def _begin(self) -> None:
        if self._crowd.is_draining:
            return
        if not self.open:
            self._begun_count += 1
            self.open = b"task %d" % self._begun_count
        elif self._rng.random() < 0.3:
            self.is_cancelled = True
        self._crowd.queue.after(self._rng.randint(1, 2 * self._pause_us), self._begin)


class TaskRunner:
    """Beside one leader of the dead-letter queue, as long as that runs."""

    def __init__(self, crowd: Crowd, host: QueueHost, board: TaskBoard, rng: random.Random) -> None:
        self._crowd, self._host, self._board, self._rng = crowd, host, board, rng
        self._is_asking = False
        self._is_new = True
        crowd.queue.after(LOOK_US, self._look)

    def _look(self) -> None:
        host, board = self._host, self._board
        if host.is_stopped:
            return
        if host.core is not None and board.open and not self._is_asking:
            self._is_asking = True
            host.ask(BeginTask(board.open, len(host.term.entries)), self._on_share)
        self._crowd.queue.after(LOOK_US, self._look)

    def _on_share(self, answer: Answer | QueueError | None) -> None:
        if not isinstance(answer, TaskShare):
            self._is_asking = False
        elif answer.ending:
            self._is_asking = False
            self._board.end(answer)
        else:
            if self._is_new and answer.moved_count:
                self._crowd.sometimes.note("a leader went on with a move task")
            self._is_new = False
            self._host.ask(NextToMove(self._rng.choice((1, 4, 20))), self._on_next)

    def _on_next(self, answer: Answer | QueueError | None) -> None:
        if not isinstance(answer, ToMove):
            self._is_asking = False
        elif self._board.is_cancelled or not answer.offsets:
            ending = "CANCELLED" if self._board.is_cancelled else "COMPLETED"
            self._host.ask(EndTask(self._board.open, ending), self._on_share)
        else:  # others may receive them before they are on their way
            self._crowd.queue.after(
                self._rng.choice((1, 20_000, 200_000)), self._want, Move(answer.offsets, SOURCE, 0)
            )

    def _want(self, command: Move) -> None:
        self._host.ask(command, self._on_moved)

    def _on_moved(self, answer: Answer | QueueError | None) -> None:
        self._is_asking = False
        if isinstance(answer, Moved):
            if answer.moved_count:
                self._crowd.sometimes.note("a move task moved messages")
            if not answer.chosen_count:
                self._crowd.sometimes.note("others received what a task was to move")
