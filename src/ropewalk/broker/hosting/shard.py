"""One shard of replicated state, hosted beside the partition that holds its events.

    load     read the log, apply every event, then serve
    ask      decide → append the events → apply them at once; answer when they are committed
    ask_in_transaction
             the same, for what counts only if a producer's transaction is committed; the partition may refuse the producer
    end_transaction
             append the marker → apply it at once; done when it is committed
    refuse   when an append fails: nothing that was decided since can be trusted, so the state is thrown away, everyone
             who waits is told that the outcome is unknown, and the log is read again

Invariants
    An answer is released when the high watermark has passed the last event that was appended before the answer was
    decided. Whoever reads state that is not committed yet waits for it, too.
    Events and markers are in the log in the order in which they were applied. Events of one turn of the loop share a
    batch, but for those of a transaction, which have one of their own.
    No refusal of the host's own is definite once something may be in the log: `ShardUnavailable` promises nothing.

What a reader could get wrong
    Between a decision and the end of the loop's turn the state is ahead of the log. Nothing leaves the shard in
    that time.
    A late commit does not throw the state away: its events are in the log, and whoever asks next waits for
    them as well.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
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
from ropewalk.base.ids import Offset
from ropewalk.base.limits import SHARD_REST_MS
from ropewalk.base.ports import Pool
from ropewalk.base.state_machine import Step
from ropewalk.broker.hosting.event_batches import Enrolment, header_of
from ropewalk.broker.hosting.replay import Happened, Passage
from ropewalk.broker.hosting.state_machine import Core, Kind, TransactionalCore
from ropewalk.broker.hosting.steady_time import SteadyTime
from ropewalk.broker.partitions.acknowledgements import Acks
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.verification import VerificationGuard
from ropewalk.records.marker import TransactionMarker

C = TypeVar("C")
E = TypeVar("E")
A = TypeVar("A")

_log = structlog.get_logger()

_REFUSED_UNWRITTEN: Final = (ProducerFenced, InvalidTransactionState, TransactionCoordinatorFenced)
"""A partition says these of a producer or of a marker, before anything is written."""


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
        self._commit_timeout_ms = commit_timeout_ms
        self._on_thrown_away = on_thrown_away
        self._core: Core[C, E, A] | None = None
        self._refusal: RopewalkError = ShardLoading(f"{partition.name} is being read")
        self._tokens = count(1)
        self._asked: dict[int, asyncio.Future[A]] = {}
        self._events: list[E] = []
        """Applied, and to be appended at the end of this turn of the loop."""
        self._replies: list[tuple[asyncio.Future[A], A | RopewalkError]] = []
        """Decided after `_events`, and to be released when they are committed."""
        self._end_offset = Offset(0)
        """After the last event that the state contains and the log too."""
        self._latest: _Release[A] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0.0
        self._flush_is_due = False

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
        self._end_offset = end_offset
        core.on_loaded(self._time.now_ms())
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
        self._flush()
        core = self._serving()
        self._check_room()
        assert isinstance(core, TransactionalCore), "this kind of state takes no part in transactions"
        token = next(self._tokens)
        now_ms = self._time.now_ms()
        step = core.decide(token, command, now_ms)
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._asked[token] = answer
        try:
            self._append(step.events, enrolment, guard)
        except _REFUSED_UNWRITTEN:
            del self._asked[token]
            raise
        except RopewalkError as error:
            self._throw_away(error)
            return Asked(token, answer)
        for event in step.events:
            core.apply_pending(enrolment.producer_id, event, now_ms)
        self._take_replies(step)
        self._release()
        self._arm()
        return Asked(token, answer)

    def end_transaction(self, marker: TransactionMarker) -> "asyncio.Future[None]":
        """The end of a producer's transaction, for this shard's partition: only here may it be written.

        Raises at once, with nothing changed, what the partition refuses the marker with. The answer comes when the
        marker is committed, or fails with an error of which the outcome is unknown.
        """
        self._flush()
        core = self._serving()
        self._check_room()
        assert isinstance(core, TransactionalCore), "this kind of state takes no part in transactions"
        try:
            self.partition.append_marker(marker, Acks.NOBODY, 0)
        except _REFUSED_UNWRITTEN:
            raise
        except RopewalkError as error:
            self._throw_away(error)
            raise self._outcome_unknown(str(error)) from error
        self._end_offset = self.partition.log.end_offset
        core.apply_end(marker.producer_id, marker.committed, self._time.now_ms())
        self._arm()
        committed = self.partition.expect(self._end_offset, self._commit_timeout_ms)
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
            _fail(answer, ShardUnavailable("nobody waits for the answer any more"))
            if self._core is not None:
                self._core.forget(token)

    def end(self, reason: RopewalkError) -> None:
        """The shard is no longer hosted here."""
        self._let_go(reason)

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
            self._events += step.events
            if not self._flush_is_due:
                self._flush_is_due = True
                asyncio.get_running_loop().call_soon(self._flush)
        self._take_replies(step)
        if not self._events:
            self._release()
        self._arm()

    def _take_replies(self, step: Step[E, A | RopewalkError]) -> None:
        for reply in step.replies:
            answer = self._asked.pop(reply.token, None)
            if answer is not None:
                self._replies.append((answer, reply.answer))

    def _flush(self) -> None:
        """Write what was decided in this turn of the loop."""
        self._flush_is_due = False
        if self._core is None or not self._events:
            return
        events, self._events = self._events, []
        try:
            self._append(events, None, None)
        except RopewalkError as error:
            self._throw_away(error)
            return
        self._release()

    def _append(
        self, events: Sequence[E], enrolment: Enrolment | None, guard: VerificationGuard | None
    ) -> None:
        if events:
            now_ms = self._time.now_ms()
            for prepared in self._kind.log.batches(events, now_ms=now_ms, enrolment=enrolment):
                self.partition.append(prepared, Acks.NOBODY, 0, guard)
            self._end_offset = self.partition.log.end_offset

    def _release(self) -> None:
        """Let the replies go when the log is committed as far as the state has come."""
        replies, self._replies = self._replies, []
        if not replies:
            return
        if self._latest is not None and self._latest.end_offset == self._end_offset:
            self._latest.replies += replies
            return
        if self.partition.has_ended:
            # Another node may lead and know more, though what this one knows is committed.
            reason = self._outcome_unknown("its partition has ended")
            _refuse((answer for answer, _ in replies), reason)
            return
        committed = self.partition.expect(self._end_offset, self._commit_timeout_ms)
        if committed is None:
            _answer(replies)
            return
        self._latest = release = _Release(self._end_offset, replies)
        committed.add_done_callback(partial(self._on_committed, release))

    def _on_committed(self, release: "_Release[A]", committed: "asyncio.Future[None]") -> None:
        if self._latest is release:
            self._latest = None
        failure = committed.exception()
        if failure is None:
            _answer(release.replies)
        else:
            _refuse((answer for answer, _ in release.replies), self._outcome_unknown(str(failure)))

    def _throw_away(self, reason: RopewalkError) -> None:
        _log.warning(
            "an event could not be written; the state is read again from the log",
            partition=str(self.partition.name),
            reason=str(reason),
        )
        self._let_go(self._outcome_unknown(str(reason)))
        self._refusal = ShardLoading(f"{self.partition.name} is being read again")
        self._on_thrown_away(self)

    def _let_go(self, reason: RopewalkError) -> None:
        """What was appended in full keeps its answers: it is in the log, and commits or not by itself."""
        self._core = None
        self._refusal = reason
        self._events = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting = [*self._asked.values(), *(answer for answer, _ in self._replies)]
        self._asked = {}
        self._replies = []
        _refuse(waiting, reason)

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

    def _outcome_unknown(self, reason: str) -> ShardUnavailable:
        return ShardUnavailable(f"{self.partition.name}: the outcome is not known: {reason}")


def _apply(core: Core[C, E, A], passage: Passage[E], now_ms: int) -> None:
    if isinstance(passage, Happened):
        for event in passage.events:
            core.apply(event, now_ms)
        return
    if not isinstance(core, TransactionalCore):
        raise InvalidRecord("a part of a transaction, in the log of a kind of state that takes part in none")
    for event in passage.events:
        core.apply_pending(passage.producer_id, event, now_ms)


class _Release(Struct, Generic[A]):
    """Replies that wait for one place in the log."""

    end_offset: Offset
    replies: list[tuple[asyncio.Future[A], A | RopewalkError]]


def _answer(replies: "list[tuple[asyncio.Future[A], A | RopewalkError]]") -> None:
    for answer, reply in replies:
        if isinstance(reply, RopewalkError):
            _fail(answer, reply)
        elif not answer.cancelled():
            answer.set_result(reply)


def _refuse(answers: "Iterable[asyncio.Future[A]]", reason: RopewalkError) -> None:
    for answer in answers:
        _fail(answer, reason)


def _fail(answer: "asyncio.Future[A]", reason: RopewalkError) -> None:
    if answer.cancelled():  # a task that waited for it has been ended
        return
    answer.set_exception(reason)
    answer.exception()  # whoever asked may be gone with its connection, and asyncio would complain of that
