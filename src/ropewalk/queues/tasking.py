"""A move task in one partition: which of its messages come next, and who waits for them to be moved.

What is durable of a task is in the state: how far the log belongs to it, how many were moved, and how it ended. Who asks for the next ones is told those that
could be received now, and names the ones to be moved; others may receive them in between, and then they stay.
"""

from itertools import islice

from ropewalk.base.limits import QUEUE_MOVE_MESSAGES_MAX
from ropewalk.queues.commands import Move, NextToMove
from ropewalk.queues.errors import MoveUnderWay, UnknownTask
from ropewalk.queues.outlook import Outlook
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.state import QueueState, TaskShare


class Tasking:
    def __init__(self, state: QueueState) -> None:
        self._state = state
        self.scout: tuple[int, NextToMove] | None = None
        """Token and question of whoever asks what comes next."""
        self.wanted: tuple[int, Move] | None = None
        """The same of whoever wants something moved that is not on its way yet."""
        self.carried: int | None = None
        """Token of whoever wanted what is on its way."""

    def open(self) -> TaskShare:
        """The task that goes on here. Raises `UnknownTask` where none does."""
        task = self._state.task
        if task is None or task.ending:
            raise UnknownTask("no move task goes on here")
        return task

    def is_moving(self) -> bool:
        """Whether something of the task is on its way."""
        task, move = self._state.task, self._state.move
        return task is not None and move is not None and move.task_id == task.task_id

    def look(self, token: int, command: NextToMove) -> None:
        self.open()
        self.scout = (token, command)

    def want(self, token: int, command: Move) -> None:
        self.open()
        if self.wanted is not None or self.is_moving():
            raise MoveUnderWay("messages of the task are being moved; wait until they have arrived")
        self.wanted = (token, command)

    def check_may_end(self, task_id: bytes) -> TaskShare:
        """Raises `UnknownTask`, and `MoveUnderWay` while nobody knows how many were moved."""
        task = self._state.task
        if task is None or task.task_id != task_id:
            raise UnknownTask("another move task has come here since")
        if self.wanted is not None or self.is_moving():
            raise MoveUnderWay("messages of the task are being moved; wait until they have arrived")
        return task

    def forget(self, token: int) -> None:
        if self.scout is not None and self.scout[0] == token:
            self.scout = None
        if self.wanted is not None and self.wanted[0] == token:
            self.wanted = None
        if self.carried == token:
            self.carried = None

    def wants_more(self, outlook: Outlook) -> bool:
        """Whether the log is to be read on for somebody."""
        task = self._state.task
        return self.scout is not None and task is not None and outlook.read_end < task.end_offset


def next_of(
    task: TaskShare, outlook: Outlook, settings: QueueSettings, count_max: int, now_ms: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Messages of the task that could be received now; and those that are older than the queue keeps messages, which are to be settled."""
    offsets: list[int] = []
    expired: list[int] = []
    mine = (offset for offset in outlook.line.take() if offset < task.end_offset)
    for offset in islice(mine, min(count_max, QUEUE_MOVE_MESSAGES_MAX)):
        sent_at_ms = outlook.sent_at_ms(offset)
        assert sent_at_ms is not None, "what is visible is not delayed"
        is_expired = sent_at_ms + settings.retention_ms <= now_ms
        (expired if is_expired else offsets).append(offset)
    return tuple(sorted(offsets)), tuple(expired)
