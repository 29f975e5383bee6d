"""Dead letters on their way: an intent that is committed, an append to the target under its identity, and how that ended.

One move is under way at a time, of as many messages as wait. Whoever repeats the append under the same producer and sequence is told the first offsets by
the target's own log, so a message is in the dead-letter queue once however often the leader changes in between.

What a reader could get wrong
    A sequence whose move certainly failed is used again: the target expects it next. One whose outcome nobody knows is never given up here.
"""

from collections.abc import Iterator
from itertools import islice

from pyroaring import BitMap64

from ropewalk.base.limits import QUEUE_MOVE_MESSAGES_MAX
from ropewalk.base.state_machine import Reply
from ropewalk.queues.answers import MoveOrder
from ropewalk.queues.commands import EndMove
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
        """Tokens of those who carry dead letters and wait for some."""

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
        """To move those that wait for it, if nothing is under way; None: not now."""
        target = settings.dead_letters
        if not dying or self._state.move is not None or target is None or self.producer is None:
            return None
        return MoveIntended(
            tuple(islice(dying, QUEUE_MOVE_MESSAGES_MAX)),
            target.topic_id,
            target.partition,
            *self.producer,
            self._state.next_sequence(self.producer, (target.topic_id, target.partition)),
            now_ms,
        )

    def check_end(self, command: EndMove) -> tuple[int, ...]:
        """The offsets of the move that has ended."""
        if self._state.move is None or self._state.move.sequence != command.sequence:
            raise UnknownMove(f"no move with sequence {command.sequence} is under way")
        return self._state.move.offsets

    def ended(self, command: EndMove) -> MoveEnded:
        return MoveEnded(command.is_moved)
