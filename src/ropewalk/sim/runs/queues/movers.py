"""Who carries messages from one queue to the other: as often as it takes, under the identity of the move."""

import random
from typing import Final

from ropewalk.queues.answers import Answer, MoveOrder, Noted
from ropewalk.queues.commands import EndMove, NextMove, ProvideProducer
from ropewalk.queues.errors import QueueError
from ropewalk.queues.events import MoveIntended
from ropewalk.sim.runs.queues.crowd import Crowd, Line
from ropewalk.sim.runs.queues.host import EPOCH_MS, AppendDead, Outgoing, QueueHost

LOOK_US: Final = 40_000
REFUSED_SHARE: Final = 0.08


class Mover:
    """Beside one leader of the source, as long as that runs."""

    def __init__(self, crowd: Crowd, host: QueueHost, target: Line, rng: random.Random) -> None:
        self._crowd, self._host, self._target, self._rng = crowd, host, target, rng
        self._is_asking = False
        crowd.queue.after(LOOK_US, self._look)

    def _look(self) -> None:
        host = self._host
        if host.is_stopped:
            return
        core = host.core
        if core is not None and not self._is_asking:
            if core.wants_producer:
                host.ask(ProvideProducer(self._crowd.around.numbers.next(), 0), lambda _: None)
            elif core.state.move is not None:
                self._is_asking = True
                host.ask(NextMove(), self._on_order)
        self._crowd.queue.after(LOOK_US, self._look)

    def _on_order(self, answer: Answer | QueueError | None) -> None:
        if not isinstance(answer, MoveOrder):
            self._is_asking = False
            return
        move = answer.move
        identity = (move.producer_id, move.producer_epoch, move.sequence)
        if self._rng.random() < REFUSED_SHARE and self._is_certainly_not_there(move):
            self._crowd.sometimes.note("a move was refused")
            self._host.ask(EndMove(move, 0), self._on_ended)
            return
        messages = []
        origins = []
        for offset in move.offsets:
            entry = self._host.term.entries[offset]
            stamp_ms = EPOCH_MS + self._crowd.queue.now_ms
            messages.append(Outgoing(self._crowd.around.numbers.next(), stamp_ms, entry.group))
            origins.append((self._host.log.name, entry.number))
        request = AppendDead(tuple(messages), identity, tuple(origins))
        outstanding = self._crowd.outstanding
        outstanding[identity] = outstanding.get(identity, 0) + 1
        self._crowd.ask(self._target, request, lambda answer: self._on_appended(move, answer))

    def _is_certainly_not_there(self, move: MoveIntended) -> bool:
        """Nobody has sent it yet."""
        return (move.producer_id, move.producer_epoch, move.sequence) not in self._crowd.outstanding

    def _on_appended(self, move: MoveIntended, answer: Answer | QueueError | None) -> None:
        if isinstance(answer, Noted):
            self._crowd.sometimes.note("dead letters were moved")
            self._host.ask(EndMove(move, len(move.offsets)), self._on_ended)
        else:
            self._crowd.sometimes.note("a move's outcome stayed unknown")
            self._is_asking = False

    def _on_ended(self, answer: Answer | QueueError | None) -> None:  # noqa: ARG002
        self._is_asking = False
