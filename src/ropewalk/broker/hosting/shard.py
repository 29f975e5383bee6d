"""The life of one shard of replicated state, hosted beside the partition that holds its events.

    ask      decide → apply the events at once → put them into the log with the turn (`turn_log.py`); answered when they are committed
    ask_in_transaction
             the same, for what counts only if a producer's transaction is committed; the partition may refuse the producer
    end_transaction
             append the marker → apply it at once; done when it is committed

    LOADING        the log is read and every event applied; whoever asks is told so
    SERVING        from the end of `load` on
    READING_AGAIN  an append failed: nothing that was decided since can be trusted, so the state was thrown away, everyone who
                   waits was told that the outcome is unknown, and the log is to be read again
    ENDED          it is no longer hosted here

Invariants
    No refusal of the host's own is definite once something may be in the log: `ShardUnavailable` promises nothing.
    There is a core if and only if the shard serves.
"""

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum, auto
from itertools import count
from typing import Final, Generic, TypeVar

import structlog
from msgspec import Struct

from ropewalk.base.errors import (
    InvalidRecord,
    InvalidTransactionState,
    ProducerFenced,
    RopewalkError,
    ShardLoading,
    ShardUnavailable,
    TransactionCoordinatorFenced,
)
from ropewalk.base.limits import SHARD_REST_MS
from ropewalk.base.ports import Pool
from ropewalk.base.state_machine import Step
from ropewalk.broker.hosting.event_batches import Enrolment, header_of
from ropewalk.broker.hosting.replay import Happened, Passage
from ropewalk.broker.hosting.state_machine import Core, Kind, TransactionalCore
from ropewalk.broker.hosting.steady_time import SteadyTime
from ropewalk.broker.hosting.turn_log import Due, TurnLog, fail, refuse
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.verification import VerificationGuard
from ropewalk.records.marker import TransactionMarker

C = TypeVar("C")
E = TypeVar("E")
A = TypeVar("A")

_log = structlog.get_logger()

_REFUSED_UNWRITTEN: Final = (ProducerFenced, InvalidTransactionState, TransactionCoordinatorFenced)
"""A partition says these of a producer or of a marker, before anything is written."""


class Life(Enum):
    """As told above."""

    LOADING = auto()
    SERVING = auto()
    READING_AGAIN = auto()
    ENDED = auto()


LEGAL: Final[Mapping[Life, frozenset[Life]]] = {
    Life.LOADING: frozenset({Life.SERVING, Life.ENDED}),
    Life.SERVING: frozenset({Life.READING_AGAIN, Life.ENDED}),
    Life.READING_AGAIN: frozenset({Life.SERVING, Life.ENDED}),
    Life.ENDED: frozenset(
        {Life.ENDED}
    ),  # a node that stops ends everything, whether or not it has moved away
}
"""What may follow what."""


class Asked(Struct, Generic[A], frozen=True):
    """A question on its way. Await `answer`; it raises what the state machine refuses with, or a shard's error."""

    token: int
    answer: "asyncio.Future[A]"


class Shard(Generic[C, E, A]):
    """Serves from the end of `load` until `end`, with pauses to load again. All of it on the event loop."""

    def __init__(
        self,
        kind: Kind[C, E, A],
        partition: Partition,
        time: SteadyTime,
        pool: Pool,
        *,
        commit_timeout_ms: int,
        on_thrown_away: "Callable[[Shard[C, E, A]], None]",
    ) -> None:
        self.partition = partition
        self._kind = kind
        self._time = time
        self._pool = pool
        self._on_thrown_away = on_thrown_away
        self._life = Life.LOADING
        self._core: Core[C, E, A] | None = None
        self._refusal: RopewalkError = ShardLoading(f"{partition.name} is being read")
        self._tokens = count(1)
        self._asked: dict[int, asyncio.Future[A]] = {}
        self._turns: TurnLog[E, A] = TurnLog(
            partition,
            kind.log,
            time,
            commit_timeout_ms=commit_timeout_ms,
            on_failed=self._throw_away,
        )
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0.0

    @property
    def is_serving(self) -> bool:
        return self._core is not None

    @property
    def core(self) -> Core[C, E, A] | None:
        """For looking at from outside, None while it is being loaded. What is seen may not be committed yet."""
        return self._core

    async def load(self) -> None:
        """Raises what keeps the log from being read; the shard then goes on refusing. Nobody else appends meanwhile."""
        core = self._kind.new_core()
        end_offset = self.partition.log.end_offset
        async for passage in self._kind.log.replay(self.partition, end_offset=end_offset, pool=self._pool):
            _apply(core, passage, self._time.now_ms())
        self.partition.check_readable()
        assert self.partition.log.end_offset == end_offset, "only a shard that serves appends to its log"
        if self._life is Life.ENDED:
            return
        self._turns.begin_at(end_offset)
        core.on_loaded(self._time.now_ms())
        self._become(Life.SERVING)
        self._core = core
        self._arm()

    def ask(self, command: C) -> Asked[A]:
        """Takes effect before this returns, so that commands of one caller keep their order.

        `ShardUnavailable` for what would only write, while the disk has no room: to try would cost all others the state.
        """
        core = self._serving()
        if self._kind.only_writes(command):
            self._check_room()
        token = next(self._tokens)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._asked[token] = answer
        self._carry_out(core, core.decide(token, command, self._time.now_ms()))
        return Asked(token, answer)

    def ask_in_transaction(
        self, command: C, enrolment: Enrolment, guard: VerificationGuard | None = None
    ) -> Asked[A]:
        """As `ask`, for a command whose decision changes nothing by itself.

        Raises at once, with nothing changed, what the partition refuses the producer with.
        """
        self._turns.flush()
        core = self._serving()
        self._check_room()
        assert isinstance(core, TransactionalCore), "this kind of state takes no part in transactions"
        token = next(self._tokens)
        now_ms = self._time.now_ms()
        step = core.decide(token, command, now_ms)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._asked[token] = answer
        try:
            self._turns.append(step.events, enrolment, guard)
        except _REFUSED_UNWRITTEN:
            del self._asked[token]
            raise
        except RopewalkError as error:
            self._throw_away(error)
            return Asked(token, answer)
        for event in step.events:
            core.apply_pending(enrolment.producer_id, event, now_ms)
        self._turns.put((), self._due(step))
        self._arm()
        return Asked(token, answer)

    def end_transaction(self, marker: TransactionMarker) -> "asyncio.Future[None]":
        """The end of a producer's transaction, for this shard's partition: only here may it be written.

        Raises at once, with nothing changed, what the partition refuses the marker with. The answer comes when the
        marker is committed, or fails with an error of which the outcome is unknown.
        """
        self._turns.flush()
        core = self._serving()
        self._check_room()
        assert isinstance(core, TransactionalCore), "this kind of state takes no part in transactions"
        try:
            self._turns.append_marker(marker)
        except _REFUSED_UNWRITTEN:
            raise
        except RopewalkError as error:
            self._throw_away(error)
            raise self._turns.outcome_unknown(str(error)) from error
        core.apply_end(marker.producer_id, marker.committed, self._time.now_ms())
        self._arm()
        committed = self._turns.committed()
        if committed is None:
            committed = asyncio.get_running_loop().create_future()
            committed.set_result(None)
        return committed

    def verification_needed(self, enrolment: Enrolment) -> VerificationGuard | None:
        """What `ask_in_transaction` needs, once the transaction's coordinator has agreed; None: nothing."""
        self._serving()
        return self.partition.verification_needed(header_of(enrolment))

    def decide(self, decide: Callable[[Core[C, E, A], int], Step[E, A | RopewalkError]]) -> None:
        """Something that nobody waits for has happened."""
        core = self._serving()
        self._carry_out(core, decide(core, self._time.now_ms()))

    def forget(self, token: int) -> None:
        """Whoever asked is gone. What is left of it hears so and ends, instead of waiting for ever."""
        answer = self._asked.pop(token, None)
        if answer is not None:
            fail(answer, ShardUnavailable("nobody waits for the answer any more"))
            if self._core is not None:
                self._core.forget(token)

    def end(self, reason: RopewalkError) -> None:
        """The shard is no longer hosted here."""
        self._let_go(Life.ENDED, reason)

    def _serving(self) -> Core[C, E, A]:
        if self._core is None:
            raise self._refusal.with_traceback(None)  # one error, raised often: it would remember every time
        return self._core

    def _check_room(self) -> None:
        if not self.partition.log.has_room:
            raise ShardUnavailable(f"{self.partition.name}: the disk is full, so nothing can be written")

    def _carry_out(self, core: Core[C, E, A], step: Step[E, A | RopewalkError]) -> None:
        if step.events:
            now_ms = self._time.now_ms()
            for event in step.events:
                core.apply(event, now_ms)
        self._turns.put(step.events, self._due(step))
        self._arm()

    def _due(self, step: Step[E, A | RopewalkError]) -> Due[A]:
        """Replies to those who are still there."""
        due: Due[A] = []
        for reply in step.replies:
            answer = self._asked.pop(reply.token, None)
            if answer is not None:
                due.append((answer, reply.answer))
        return due

    def _throw_away(self, reason: RopewalkError) -> None:
        _log.warning(
            "an event could not be written; the state is read again from the log",
            partition=str(self.partition.name),
            reason=str(reason),
        )
        self._let_go(Life.READING_AGAIN, self._turns.outcome_unknown(str(reason)))
        self._refusal = ShardLoading(f"{self.partition.name} is being read again")
        self._on_thrown_away(self)

    def _let_go(self, life: "Life", reason: RopewalkError) -> None:
        self._become(life)
        self._core = None
        self._refusal = reason
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting = [*self._asked.values(), *self._turns.drop()]
        self._asked = {}
        refuse(waiting, reason)

    def _become(self, life: "Life") -> None:
        assert life in LEGAL[self._life], f"a shard does not go from {self._life.name} to {life.name}"
        self._life = life

    def _arm(self) -> None:
        if self._core is None:
            return
        due_ms = self._core.deadline_ms()
        if due_ms is None or (self._timer is not None and self._timer_due_ms <= due_ms):
            return  # a timer that is early finds nothing to do and is set again
        self._set_timer(due_ms)

    def on_clock_moved(self) -> None:
        """The clock has been moved ahead: what waits for a time waits for less of it."""
        if self._timer is not None:
            self._set_timer(self._timer_due_ms)

    def _set_timer(self, due_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_ms = due_ms
        delay_s = max(0.0, due_ms - self._time.now_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        core = self._core
        if core is not None and not self.partition.log.has_room:
            self._set_timer(self._time.now_ms() + SHARD_REST_MS)  # most of what is due is to be written
        elif core is not None:
            self._carry_out(core, core.tick(self._time.now_ms()))


def _apply(core: Core[C, E, A], passage: Passage[E], now_ms: int) -> None:
    if isinstance(passage, Happened):
        for event in passage.events:
            core.apply(event, now_ms)
        return
    if not isinstance(core, TransactionalCore):
        raise InvalidRecord("a part of a transaction, in the log of a kind of state that takes part in none")
    for event in passage.events:
        core.apply_pending(passage.producer_id, event, now_ms)
