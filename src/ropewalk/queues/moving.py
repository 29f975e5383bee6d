"""Messages on their way to another queue: an intent that is committed, an append to the target under its identity, and how that ended.

One move is under way at a time, of as many messages as wait: dead letters, or those that a move task names. Whoever repeats the append under the same producer
and sequence is told the first offsets by the target's own log, so a message is there once however often the leader changes in between.

What a reader could get wrong
    A sequence is never used for anything else. Where a move ended and the target has not all of it, what follows goes under another producer id, since somebody
    who led before may still bring the rest. A move whose outcome nobody knows is never given up here.
"""

from collections.abc import Iterator
from itertools import islice

from pyroaring import BitMap64

from ropewalk.base.limits import QUEUE_MOVE_MESSAGES_MAX, QUEUE_MOVE_TARGETS_MAX
from ropewalk.base.state_machine import Reply
from ropewalk.queues.answers import MoveOrder
from ropewalk.queues.commands import EndMove, Move
from ropewalk.queues.errors import UnknownMove
from ropewalk.queues.events import MoveEnded, MoveIntended
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.state import QueueState
from ropewalk.queues.step import QueueReply


class Moving:
    def __init__(self, state: QueueState) -> None:
        self._state = state
        self.producer: tuple[int, int] | None = state.producer if state.producer[0] >= 0 else None
        """Id and epoch; None: none was provided yet."""
        self._movers: dict[int, None] = {}
        """Tokens of those who carry messages and wait for some."""

    def wait(self, token: int) -> None:
        self._movers[token] = None

    def forget(self, token: int) -> None:
        self._movers.pop(token, None)

    def orders(self) -> Iterator[QueueReply]:
        """What is under way, for everyone who waits for it."""
        if self._state.move is not None:
            for token in self._movers:
                yield Reply(token, MoveOrder(self._state.move))
            self._movers = {}

    def intent(self, dying: BitMap64, settings: QueueSettings, now_ms: int) -> MoveIntended | None:
        """To move the dead letters that wait for it, if nothing is under way; None: not now."""
        target = settings.dead_letters
        if not dying or self._state.move is not None or target is None:
            return None
        offsets = tuple(islice(dying, QUEUE_MOVE_MESSAGES_MAX))
        return self._to(target.topic_id, target.partition, offsets, b"", now_ms)

    def intent_of(
        self, command: Move, offsets: tuple[int, ...], task_id: bytes, now_ms: int
    ) -> MoveIntended | None:
        """The same for a task, of those that it named and that can be moved."""
        return self._to(command.topic_id, command.partition, offsets, task_id, now_ms)

    def check_end(self, command: EndMove) -> MoveIntended:
        """The move that has ended."""
        if self._state.move != command.move:
            raise UnknownMove(f"no move with sequence {command.move.sequence} is under way, or another one")
        return command.move

    def ended(self, command: EndMove) -> MoveEnded:
        move = command.move
        moved_count = min(command.moved_count, len(move.offsets))
        if moved_count < len(move.offsets) and self.producer == (move.producer_id, move.producer_epoch):
            self.producer = None  # unless another one was provided meanwhile
        return MoveEnded(moved_count)

    def _to(
        self, topic_id: bytes, partition: int, offsets: tuple[int, ...], task_id: bytes, now_ms: int
    ) -> MoveIntended | None:
        target, sequences = (topic_id, partition), self._state.sequences
        if (
            self.producer == self._state.producer
            and target not in sequences
            and len(sequences) >= QUEUE_MOVE_TARGETS_MAX
        ):
            self.producer = None
        if self.producer is None:
            return None
        return MoveIntended(
            offsets,
            topic_id,
            partition,
            *self.producer,
            self._state.next_sequence(self.producer, target),
            now_ms,
            task_id,
        )
