"""One partition of a queue: the public face of the room.

The host replays the log's state (`replay.py`), makes one of these and feeds it: commands, what it has read of the log, the time. The core applies what it
decides at once and keeps it until `take_delta`, which the host calls at the end of a turn if `must_write`, and appends what it is given. Replies of a step
are sent when everything appended in their turn is committed; prompts are sent at once. When an append fails, the host throws the core away, refuses
everyone who waits, and replays into another one.

What a reader could get wrong
    A standard queue's receive is answered at once and written a little later. Everything else that is answered in `replies` is written in its turn.
    What a FIFO queue is sent is decided here and appended by the host in the same turn, before it calls anything else.
    `now_ms` counts from 1970, because messages expire, but it must not jump. What is hidden is counted in the log's own time.
"""

from ropewalk.base.limits import (
    QUEUE_ACQUIRE_WRITE_MS_MAX,
    QUEUE_ALARMS_PER_TICK_MAX,
    QUEUE_MOVE_WAIT_MS,
    QUEUE_READ_WAIT_MS,
    QUEUE_TIME_WRITE_MS,
    QUEUE_WAITING_RECEIVES_MAX,
)
from ropewalk.base.state_machine import Reply
from ropewalk.queues import due_times
from ropewalk.queues.answers import Answer, Noted, Received
from ropewalk.queues.commands import (
    AnyCommand,
    ChangeVisibility,
    Delete,
    EndMove,
    Expire,
    Message,
    NextMove,
    ProvideProducer,
    Purge,
    Receive,
    Release,
    Rewind,
    Send,
)
from ropewalk.queues.due_times import DueTimes
from ropewalk.queues.errors import MoveUnderWay, QueueError, TooManyWaiting
from ropewalk.queues.event_codec import encode_delta
from ropewalk.queues.events import Cleared, Delta, Event, Hidden, Passed, Rewound, Settled
from ropewalk.queues.figures import QueueFigures
from ropewalk.queues.log_clock import LogClock
from ropewalk.queues.moving import Moving
from ropewalk.queues.outlook import Outlook
from ropewalk.queues.receiving import Batch, choose, repeated
from ropewalk.queues.sending import admit
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.settling import decide_changes, decide_deletes, decide_release
from ropewalk.queues.snapshot_codec import encode_snapshot
from ropewalk.queues.state import QueueState
from ropewalk.queues.step import QueueDraft, QueueStep
from ropewalk.queues.waiting import Waiter, Waiting


class QueuePartition:
    def __init__(
        self, settings: QueueSettings, state: QueueState, *, committed_end: int, now_ms: int
    ) -> None:
        """`state` as the log adds up to; everything below `committed_end` was written before this node led."""
        self.state = state
        """To be read by whoever likes, and written by this class alone."""
        self._settings = settings
        self._clock = LogClock(log_ms=state.log_ms, wall_ms=state.wall_ms, now_ms=now_ms)
        self._waiting = Waiting()
        self._moving = Moving(state)
        self._unwritten: list[Event] = []
        self._is_urgent = False
        self._write_due_ms: int | None = None
        """Of what is unwritten and not urgent, by the host's clock."""
        self._time_written_ms = now_ms
        self._committed_end = committed_end
        self._predecessor_end = committed_end
        self._reload(now_ms)
        self._begin_move(now_ms, QueueDraft())

    @property
    def wants_producer(self) -> bool:
        """Dead letters wait for a producer id (`ProvideProducer`)."""
        return self._moving.producer is None and bool(self._outlook.dying)

    def decide(self, token: int, command: AnyCommand, now_ms: int) -> QueueStep:
        draft = QueueDraft()
        try:
            self._decide(token, command, now_ms, draft)
        except QueueError as refusal:
            draft.prompts.append(Reply(token, refusal))
        return draft.finish()

    def on_committed(self, end_offset: int) -> None:
        """Records below are committed, and their transactions decided. Ask for `next_read` afterwards."""
        self._committed_end = max(self._committed_end, end_offset)

    def next_read(self) -> int | None:
        """The offset from which the log is to be read and told by `on_read`; None: nothing is missing."""
        is_wanted = (
            self._waiting and not self._outlook.line.has_more()
        ) or self._outlook.line.looks_further()
        return self._outlook.read_end if is_wanted and self._can_read() else None

    def on_read(self, messages: tuple[Message, ...], end_offset: int, now_ms: int) -> QueueStep:
        """All messages from `next_read` to `end_offset`, committed ones only."""
        draft = QueueDraft()
        self._outlook.know(messages, end_offset, self._clock.log_ms(now_ms))
        self._serve(now_ms, draft)
        self._dismiss_overdue(now_ms, draft)
        return draft.finish()

    def change_settings(self, settings: QueueSettings, now_ms: int) -> QueueStep:
        """What was read has to be read again."""
        draft = QueueDraft()
        self._settings = settings
        self._reload(now_ms)
        self._begin_move(now_ms, draft)
        self._serve(now_ms, draft)
        return draft.finish()

    def tick(self, now_ms: int) -> QueueStep:
        """Do what is due. With very much to do it stops in between, and `deadline_ms` is in the past."""
        draft = QueueDraft()
        log_ms = self._clock.log_ms(now_ms)
        impatient: list[tuple[int, int]] = []
        for _ in range(QUEUE_ALARMS_PER_TICK_MAX):
            due = self._due_times.pop_due(log_ms)
            if due is None:
                break
            due_ms, payload = due
            if due_times.is_token(payload):
                impatient.append((due_ms, due_times.subject(payload)))
            else:
                self._on_message_due(due_ms, payload, now_ms)
        self._expire_head(now_ms)
        self._begin_move(now_ms, draft)
        self._serve(now_ms, draft)
        for due_ms, token in impatient:  # after what has become visible in the same instant
            waiter = self._waiting.get(token)
            if waiter is not None and waiter.due_ms == due_ms:
                self._on_patience_over(waiter, draft)
        return draft.finish()

    def deadline_ms(self) -> int | None:
        """When `tick`, or a write, is due next; None: not before something else happens."""
        due_ms = self._due_times.next_ms()
        deadlines = [self._clock.now_ms(due_ms)] if due_ms is not None else []
        if self._is_urgent:
            deadlines.append(0)
        if self._write_due_ms is not None:
            deadlines.append(self._write_due_ms)
        if self._outlook.hidden_count():
            deadlines.append(self._time_written_ms + QUEUE_TIME_WRITE_MS)
        expiry_ms = self._head_expires_at_ms()
        if expiry_ms is not None:
            deadlines.append(expiry_ms)
        return min(deadlines, default=None)

    def forget(self, token: int) -> None:
        """Nobody waits for this reply any more. What was given to it already has to be released."""
        self._waiting.remove(token)
        self._moving.forget(token)

    def must_write(self, now_ms: int) -> bool:
        """Whether a delta is to be appended at the end of this turn."""
        return (
            self._is_urgent
            or (self._write_due_ms is not None and self._write_due_ms <= now_ms)
            or (self._outlook.hidden_count() > 0 and self._time_written_ms + QUEUE_TIME_WRITE_MS <= now_ms)
        )

    def take_delta(self, now_ms: int) -> bytes:
        """The value of the record that is to be appended now; what was not written yet counts as written."""
        return encode_delta(self._written(now_ms))

    def take_snapshot(self, now_ms: int) -> list[bytes]:
        """The same for the whole state: records that are appended one after the other, with nothing in between."""
        self._written(now_ms)
        self.state.deduplication.forget(now_ms)
        return encode_snapshot(self.state)

    def figures(self) -> QueueFigures:
        outlook = self._outlook
        return QueueFigures(
            in_flight_count=len(outlook.in_flight),
            delayed_count=len(outlook.delayed),
            resting_count=len(outlook.resting),
            dying_count=len(outlook.dying),
            moving_count=len(self.state.move.offsets) if self.state.move else 0,
            hole_count=len(self.state.settled),
            waiting_count=len(self._waiting),
            deduplication_count=len(self.state.deduplication),
            unread_count=max(self._committed_end - outlook.read_end, 0),
            is_window_full=not outlook.can_read(),
        )

    def _decide(self, token: int, command: AnyCommand, now_ms: int, draft: QueueDraft) -> None:
        answer: Answer
        match command:
            case Receive():
                self._receive(token, command, now_ms, draft)
                return
            case NextMove():
                self._moving.wait(token)
                self._hand_over_move(draft)
                return
            case Send():
                answer = admit(self.state.deduplication, self._settings, command, now_ms)
            case Delete(handles):
                settled, answer = decide_deletes(self.state, self._settings, handles, self._log_ms(now_ms))
                self._settle(settled, now_ms)
            case ChangeVisibility(changes):
                events, answer = decide_changes(self.state, self._settings, changes, self._log_ms(now_ms))
                for event in events:
                    self._emit(event, now_ms)
                    self._place(event.offsets, now_ms)
            case Release(handles):
                released = decide_release(self.state, handles, self._log_ms(now_ms))
                if released.offsets:
                    self._emit(released, now_ms)
                    self._place(released.offsets, now_ms)
                answer = Noted()
            case Purge(end_offset) | Expire(end_offset):
                self._outlook.drop_below(end_offset)
                self._emit(Cleared(end_offset), now_ms)
                answer = Noted()
            case Rewind(offset):
                if self.state.move is not None:
                    raise MoveUnderWay("dead letters are being moved; ask again shortly")
                self._emit(Rewound(offset), now_ms)
                self._reload(now_ms)
                answer = Noted()
            case ProvideProducer(producer_id, producer_epoch):
                self._moving.producer = (producer_id, producer_epoch)
                answer = Noted()
            case EndMove():
                event_offsets = self._moving.check_end(command)
                if command.is_moved:
                    for offset in event_offsets:
                        self._outlook.drop(offset)
                self._emit(self._moving.ended(command), now_ms)
                for offset in event_offsets:  # where nobody takes them they stay, to be received again
                    if offset in self.state.entries:
                        self._outlook.line.show(offset)
                answer = Noted()
        draft.replies.append(Reply(token, answer))
        self._is_urgent = self._is_urgent or bool(self._unwritten)
        self._begin_move(now_ms, draft)
        self._serve(now_ms, draft)
        self._dismiss_overdue(now_ms, draft)

    def _receive(self, token: int, command: Receive, now_ms: int, draft: QueueDraft) -> None:
        log_ms = self._log_ms(now_ms)
        batch = repeated(self.state, command, log_ms)
        if batch is None:
            if not self._waiting:
                batch = self._chosen(command, now_ms)
            if batch is None:
                self._park(token, command, log_ms, draft)
                self._serve(now_ms, draft)
                return
        self._give(token, command, batch, now_ms, draft)

    def _chosen(self, command: Receive, now_ms: int) -> Batch | None:
        chosen = choose(self.state, self._outlook, self._settings, command, now_ms)
        self._settle(chosen.expired, now_ms)
        return chosen.batch

    def _give(self, token: int, command: Receive, batch: Batch, now_ms: int, draft: QueueDraft) -> None:
        event = batch.acquired(command, at_ms=self._log_ms(now_ms), received_at_ms=now_ms)
        for offset in batch.offsets:
            self._outlook.touch(offset)
        self._emit(event, now_ms)
        self._place(batch.offsets, now_ms)
        reply = Reply(token, batch.answer(self.state))
        if self._settings.is_fifo:
            self._is_urgent = True
            draft.replies.append(reply)
        else:
            draft.prompts.append(reply)

    def _park(self, token: int, command: Receive, log_ms: int, draft: QueueDraft) -> None:
        """Let it wait: for a message, for the log to be read, or for dead letters to be out of the way."""
        wait_ms, is_overdue = command.wait_ms, False
        if wait_ms <= 0 and self._can_read():
            wait_ms, is_overdue = QUEUE_READ_WAIT_MS, True
        elif wait_ms <= 0 and self._has_dead_letters():
            wait_ms, is_overdue = QUEUE_MOVE_WAIT_MS, True
        if wait_ms <= 0:
            draft.prompts.append(Reply(token, Received(self.state.attempt)))
            return
        if len(self._waiting) >= QUEUE_WAITING_RECEIVES_MAX:
            raise TooManyWaiting(f"{QUEUE_WAITING_RECEIVES_MAX} receives wait here already")
        waiter = Waiter(token, command, log_ms + wait_ms, is_overdue)
        self._waiting.add(waiter)
        self._due_times.set(waiter.due_ms, due_times.of_token(token))

    def _serve(self, now_ms: int, draft: QueueDraft) -> None:
        """Give what is visible to those who wait, in order of arrival."""
        while self._waiting and self._outlook.line.has_more():
            waiter = self._waiting.first()
            try:
                batch = self._chosen(waiter.command, now_ms)
            except QueueError as refusal:
                self._waiting.remove(waiter.token)
                draft.prompts.append(Reply(waiter.token, refusal))
                continue
            if batch is None:
                return
            self._waiting.remove(waiter.token)
            self._give(waiter.token, waiter.command, batch, now_ms, draft)

    def _on_message_due(self, due_ms: int, payload: int, now_ms: int) -> None:
        subject = due_times.subject(payload)
        if subject in self.state.entries:
            entry = self.state.entries[subject]
            if entry.until_ms == due_ms:
                self._surface(subject, now_ms)
        elif subject in self._outlook.delayed:
            self._outlook.ripen(subject, due_ms, due_times.delay_ms(payload))

    def _on_patience_over(self, waiter: Waiter, draft: QueueDraft) -> None:
        """What is in the log and was not read yet may still be for it."""
        if waiter.is_overdue or not self._can_read():
            self._dismiss(waiter, draft)
        else:
            waiter.is_overdue = True
            waiter.due_ms += QUEUE_READ_WAIT_MS
            self._due_times.set(waiter.due_ms, due_times.of_token(waiter.token))

    def _dismiss_overdue(self, now_ms: int, draft: QueueDraft) -> None:
        """There is nothing more to read for them. Dead letters that are on their way keep them a little longer."""
        if self._can_read():
            return
        for waiter in self._waiting.overdue():
            if not self._has_dead_letters():
                self._dismiss(waiter, draft)
            elif waiter.due_ms > self._log_ms(now_ms) + QUEUE_MOVE_WAIT_MS:
                waiter.due_ms = self._log_ms(now_ms) + QUEUE_MOVE_WAIT_MS
                self._due_times.set(waiter.due_ms, due_times.of_token(waiter.token))

    def _has_dead_letters(self) -> bool:
        return bool(self._outlook.dying) or self.state.move is not None

    def _dismiss(self, waiter: Waiter, draft: QueueDraft) -> None:
        self._waiting.remove(waiter.token)
        draft.prompts.append(Reply(waiter.token, Received(self.state.attempt)))

    def _surface(self, offset: int, now_ms: int) -> None:
        """Its visibility has ended: it is given out again, rests, or is a dead letter."""
        entry = self.state.entries[offset]
        until_ms = self._outlook.rest_until_ms(entry)
        if until_ms > self._log_ms(now_ms):
            self._outlook.in_flight.discard(offset)
            self._outlook.line.land(offset)
            self._emit(Hidden((offset,), until_ms, is_acquired=False), now_ms)
        self._outlook.place(offset, self._log_ms(now_ms))

    def _place(self, offsets: tuple[int, ...], now_ms: int) -> None:
        """Their deadlines have changed."""
        log_ms = self._log_ms(now_ms)
        for offset in offsets:
            if self.state.entries[offset].until_ms <= log_ms:
                self._surface(offset, now_ms)
            else:
                self._outlook.place(offset, log_ms)

    def _settle(self, offsets: tuple[int, ...], now_ms: int) -> None:
        if offsets:
            for offset in offsets:
                self._outlook.drop(offset)
            self._emit(Settled(offsets), now_ms)

    def _expire_head(self, now_ms: int) -> None:
        for _ in range(QUEUE_ALARMS_PER_TICK_MAX):
            expiry_ms = self._head_expires_at_ms()
            head = self._outlook.head()
            if expiry_ms is None or expiry_ms > now_ms or head is None:
                return
            self._settle((head,), now_ms)

    def _head_expires_at_ms(self) -> int | None:
        head = self._outlook.head()
        if head is None or self.state.is_moving(head):
            return None
        sent_at_ms = self._outlook.sent_at_ms(head)
        return None if sent_at_ms is None else sent_at_ms + self._settings.retention_ms

    def _begin_move(self, now_ms: int, draft: QueueDraft) -> None:
        intent = self._moving.intent(self._outlook.dying, self._settings, now_ms)
        if intent is not None:
            self._emit(intent, now_ms)
            self._is_urgent = True
            for offset in intent.offsets:
                self._outlook.dying.discard(offset)
        self._hand_over_move(draft)

    def _hand_over_move(self, draft: QueueDraft) -> None:
        draft.replies += self._moving.orders()

    def _reload(self, now_ms: int) -> None:
        """Begin anew with what is visible, from the durable state."""
        self._due_times = DueTimes()
        for waiter in self._waiting.all():
            self._due_times.set(waiter.due_ms, due_times.of_token(waiter.token))
        self._outlook = Outlook(
            self.state, self._settings, self._clock, self._due_times, predecessor_end=self._predecessor_end
        )
        self._place(tuple(self.state.touched), now_ms)

    def _can_read(self) -> bool:
        return self._outlook.read_end < self._committed_end and self._outlook.can_read()

    def _log_ms(self, now_ms: int) -> int:
        return self._clock.log_ms(now_ms)

    def _emit(self, event: Event, now_ms: int) -> None:
        self.state.apply(event)
        self._unwritten.append(event)
        if self._write_due_ms is None:
            self._write_due_ms = now_ms + QUEUE_ACQUIRE_WRITE_MS_MAX
        if self._due_times.is_stale(self._outlook.hidden_count() + len(self._waiting)):
            self._due_times.keep(self._still_counts)

    def _still_counts(self, due_ms: int, payload: int) -> bool:
        subject = due_times.subject(payload)
        if due_times.is_token(payload):
            waiter = self._waiting.get(subject)
            return waiter is not None and waiter.due_ms == due_ms
        return self._outlook.is_due(subject, due_ms)

    def _written(self, now_ms: int) -> Delta:
        cursor = self._outlook.cursor()
        if cursor > self.state.cursor:
            self._emit(Passed(cursor), now_ms)
        delta = Delta(self._log_ms(now_ms), now_ms, tuple(self._unwritten))
        self.state.log_ms, self.state.wall_ms = delta.log_ms, delta.wall_ms
        self._unwritten = []
        self._is_urgent, self._write_due_ms = False, None
        self._time_written_ms = now_ms
        return delta
