"""All transactional ids of one shard: the public face of the room.

The host replays the shard's log (`apply` for each event, then `on_loaded`), and from then on calls one command at a
time. Of every `Step` it appends the events and applies them before the next call, and it releases the replies when the
high watermark passes the last event appended so far. When an append fails, it throws the core away, refuses
everyone who waits, and replays into another core.

What a reader could get wrong
    `ListUnfinished` is answered like everything else when what was decided before it is committed. So the one who writes
    markers never hears of an end that could still be lost.
    A reply may come in a later step than the command: for a producer that waits for a transaction to be finished or prepared.
    `now_ms` counts from 1970, because transactions remember when they began, but it must not jump.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TypeAlias

from ropewalk.base.limits import TRANSACTION_ALARMS_PER_TICK_MAX
from ropewalk.base.state_machine import Reply, Step
from ropewalk.base.timers import Timers
from ropewalk.transactions.answers import MarkersNoted
from ropewalk.transactions.commands import (
    AddPartitions,
    AnyCommand,
    DescribeTransactions,
    EndTransaction,
    InitProducer,
    ListTransactions,
    ListUnfinished,
    MarkersWritten,
)
from ropewalk.transactions.ending import aborted_by_coordinator, completed, decide_end
from ropewalk.transactions.errors import ConcurrentTransactions, TransactionError
from ropewalk.transactions.events import Event, TransactionalIdRemoved, TransactionRecorded, TransactionState
from ropewalk.transactions.finishing import Finishing
from ropewalk.transactions.initialising import decide_init
from ropewalk.transactions.joining import decide_add
from ropewalk.transactions.overview import describe, list_matching
from ropewalk.transactions.settings import TransactionSettings
from ropewalk.transactions.step import Decision, TransactionReply, TransactionStep
from ropewalk.transactions.waiting import Patient, Waiter, Waiting


class _Alarm(IntEnum):
    TIMEOUT = 0
    EXPIRY = 1
    PATIENCE = 2


_AlarmKey: TypeAlias = tuple[_Alarm, str | int]
"""What of which transactional id, or of which token."""


class TransactionsCore:
    def __init__(self, settings: TransactionSettings) -> None:
        self.transactions: dict[str, TransactionRecorded] = {}
        """The durable state, by transactional id. To be read by whoever likes, and written by `apply` alone."""
        self._settings = settings
        self._finishing = Finishing()
        self._waiting = Waiting()
        self._finishers: set[int] = set()
        """Tokens of those who wait for anything to be prepared."""
        self._timers: Timers[_AlarmKey] = Timers()
        self._is_loaded = False

    @property
    def unfinished_count(self) -> int:
        """Prepared transactions that lack markers."""
        return len(self._finishing)

    def apply(self, event: Event, now_ms: int) -> None:  # noqa: ARG002  # the same for every kind of state
        match event:
            case TransactionRecorded(transactional_id):
                self.transactions[transactional_id] = event
                if self._is_loaded:
                    self._watch(event)
            case TransactionalIdRemoved(transactional_id):
                self.transactions.pop(transactional_id, None)
                if self._is_loaded:
                    self._finishing.forget(transactional_id)

    def on_loaded(self, now_ms: int) -> None:  # noqa: ARG002
        """The log has been replayed. What has taken too long meanwhile is due at once."""
        assert not self._is_loaded
        self._is_loaded = True
        for transactional_id in sorted(self.transactions):  # alarms that are due together keep this order
            self._watch(self.transactions[transactional_id])

    def decide(self, token: int, command: AnyCommand, now_ms: int) -> TransactionStep:
        match command:
            case InitProducer() | AddPartitions():
                return self._ask(token, command, now_ms)
            case EndTransaction():
                decision = self._decided(self.transactions.get(command.transactional_id), command, now_ms)
                return self._step(_event(decision), [Reply(token, decision.answer)])
            case MarkersWritten():
                return self._note_markers(token, command, now_ms)
            case ListUnfinished():
                unfinished = self._finishing.prepared_after(command.after)
                if command.waits and not unfinished.transactions:
                    self._finishers.add(token)
                    return Step()
                return Step(replies=(Reply(token, unfinished),))
            case DescribeTransactions(transactional_ids):
                return Step(replies=(Reply(token, describe(self.transactions, transactional_ids)),))
            case ListTransactions():
                try:
                    return Step(replies=(Reply(token, list_matching(self.transactions, command, now_ms)),))
                except TransactionError as refusal:
                    return Step(replies=(Reply(token, refusal),))

    def tick(self, now_ms: int) -> TransactionStep:
        """Do what is due. With very much to do it stops in between, and `deadline_ms` is in the past."""
        events: list[Event] = []
        replies: list[TransactionReply] = []
        for _ in range(TRANSACTION_ALARMS_PER_TICK_MAX):
            match self._timers.pop_due(now_ms):
                case None:
                    break
                case (_Alarm.TIMEOUT, str(transactional_id)):
                    events.append(aborted_by_coordinator(self.transactions[transactional_id], now_ms))
                case (_Alarm.EXPIRY, str(transactional_id)):
                    events.append(TransactionalIdRemoved(transactional_id))
                case (_Alarm.PATIENCE, int(token)):
                    waiter = self._waiting.remove(token)
                    assert waiter is not None, "a producer that waits no longer has no alarm"
                    replies.append(Reply(token, _still_being_finished(waiter.command.transactional_id)))
        return self._step(events, replies)

    def deadline_ms(self) -> float | None:
        """When `tick` is due next; None: not before another command."""
        return self._timers.next_due_at_ms()

    def forget(self, token: int) -> None:
        """Nobody waits for this reply any more."""
        self._finishers.discard(token)
        self._waiting.remove(token)
        self._timers.cancel((_Alarm.PATIENCE, token))

    def _ask(self, token: int, command: Patient, now_ms: int) -> TransactionStep:
        decision = self._decided(self.transactions.get(command.transactional_id), command, now_ms)
        waiter = Waiter(token, command, now_ms + command.patience_ms)
        return self._step(_event(decision), list(self._answered(waiter, decision, now_ms)))

    def _note_markers(self, token: int, command: MarkersWritten, now_ms: int) -> TransactionStep:
        """When that was the last, a producer that waited for it is decided about as if it had asked only then, one by one."""
        if not self._finishing.on_markers_written(command):
            return Step(replies=(Reply(token, MarkersNoted(is_finished=False)),))
        record = completed(self.transactions[command.transactional_id], now_ms)
        events: list[Event] = [record]
        replies: list[TransactionReply] = [Reply(token, MarkersNoted(is_finished=True))]
        for waiter in self._waiting.take(command.transactional_id):
            self._timers.cancel((_Alarm.PATIENCE, waiter.token))
            decision = self._decided(record, waiter.command, now_ms)
            events += _event(decision)
            record = decision.event or record
            replies += self._answered(waiter, decision, now_ms)
        return self._step(events, replies)

    def _decided(
        self,
        record: TransactionRecorded | None,
        command: InitProducer | AddPartitions | EndTransaction,
        now_ms: int,
    ) -> Decision:
        try:
            match command:
                case InitProducer():
                    return decide_init(record, command, self._settings, now_ms)
                case AddPartitions():
                    return decide_add(record, command, now_ms)
                case EndTransaction():
                    return decide_end(record, command, now_ms)
        except TransactionError as refusal:
            return Decision(refusal)

    def _answered(self, waiter: Waiter, decision: Decision, now_ms: int) -> Iterator[TransactionReply]:
        """The answer, unless it is to wait, and there is patience for it and something to wait for."""
        is_being_finished = decision.event is None or decision.event.state.is_prepared
        if (
            isinstance(decision.answer, ConcurrentTransactions)
            and is_being_finished
            and waiter.due_at_ms > now_ms
        ):
            self._waiting.add(waiter)
            self._timers.set((_Alarm.PATIENCE, waiter.token), waiter.due_at_ms)
        else:
            yield Reply(waiter.token, decision.answer)

    def _step(self, events: Iterable[Event], replies: list[TransactionReply]) -> TransactionStep:
        """With the answer for the finisher, if there is anything to be finished now."""
        events = tuple(events)
        if self._finishers:
            recorded = [event for event in events if isinstance(event, TransactionRecorded)]
            unfinished = self._finishing.prepared_by(recorded)
            if unfinished.transactions:
                replies += [Reply(token, unfinished) for token in sorted(self._finishers)]
                self._finishers.clear()
        return Step(events, tuple(replies))

    def _watch(self, record: TransactionRecorded) -> None:
        transactional_id = record.transactional_id
        timeout, expiry = (_Alarm.TIMEOUT, transactional_id), (_Alarm.EXPIRY, transactional_id)
        if record.state is TransactionState.ONGOING:
            self._timers.set(timeout, record.started_at_ms + record.timeout_ms)
        else:
            self._timers.cancel(timeout)
        if record.state.is_open:
            self._timers.cancel(expiry)
        else:
            self._timers.set(expiry, record.updated_at_ms + self._settings.expiration_ms)
        self._finishing.note(record)


def _event(decision: Decision) -> list[Event]:
    return [] if decision.event is None else [decision.event]


def _still_being_finished(transactional_id: str) -> ConcurrentTransactions:
    return ConcurrentTransactions(f"the former transaction of {transactional_id!r} is still being finished")
