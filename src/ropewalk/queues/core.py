"""One partition of a queue: the public face of the room.

The host replays the log's state (`replay.py`), makes one of these and feeds it: commands, what it has read of the log, the time. The core applies what it
decides at once and keeps it until `take_delta`, which the host calls at the end of a turn if `must_write`, and appends what it is given. Replies of a step
are sent when the log is committed up to where it ends after their turn, whoever of earlier turns wrote that; prompts are sent at once. When an append fails, the host throws the core away, refuses
everyone who waits, and replays into another one.

What a reader could get wrong
    A standard queue's receive is answered at once and written a little later. Everything else that is answered in `replies` is written in its turn.
    What a FIFO queue is sent is decided here and appended by the host in the same turn, before it calls anything else.
    `now_ms` counts from 1970, because messages expire, but it must not jump. What is hidden is counted in the log's own time.
"""

from ropewalk.base.limits import (
    QUEUE_ACQUIRE_WRITE_MS_MAX,
    QUEUE_ALARMS_PER_TICK_MAX,
    QUEUE_GATHER_MS,
    QUEUE_MOVE_WAIT_MS,
    QUEUE_READ_WAIT_MS,
    QUEUE_RECEIVE_MESSAGES_MAX,
    QUEUE_SNAPSHOT_PIECE_BYTES,
    QUEUE_TIME_WRITE_MS,
    QUEUE_WAITING_RECEIVES_MAX,
)
from ropewalk.base.state_machine import Reply
from ropewalk.queues import due_times
from ropewalk.queues.answers import Answer, Moved, Noted, Received, ToMove
from ropewalk.queues.commands import (
    AnyCommand,
    BeginTask,
    ChangeVisibility,
    Delete,
    EndMove,
    EndTask,
    Expire,
    Message,
    Move,
    NextMove,
    NextToMove,
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
from ropewalk.queues.events import (
    Cleared,
    Delta,
    Event,
    Hidden,
    MoveIntended,
    Passed,
    Rewound,
    Settled,
    TaskBegun,
    TaskEnded,
)
from ropewalk.queues.figures import QueueFigures
from ropewalk.queues.log_clock import LogClock
from ropewalk.queues.moving import Moving
from ropewalk.queues.outlook import Outlook
from ropewalk.queues.receiving import Batch, choose, repeated
from ropewalk.queues.sending import admit
from ropewalk.queues.sent_times import SentTimes
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.settling import decide_changes, decide_deletes, decide_release
from ropewalk.queues.snapshot_codec import encode_snapshot
from ropewalk.queues.state import QueueState, TaskShare
from ropewalk.queues.step import QueueDraft, QueueStep
from ropewalk.queues.tasking import Tasking, next_of
from ropewalk.queues.waiting import Waiter, Waiting


class QueuePartition:
    def __init__(
        self,
        settings: QueueSettings,
        state: QueueState,
        *,
        committed_end: int,
        now_ms: int,
        first_attempt: int = 1,
    ) -> None:
        """`state` as the log adds up to; everything below `committed_end` was written before this node led. Attempts have no number below `first_attempt` (`attempts.py`)."""
        self.state = state
        """To be read by whoever likes, and written by this class alone."""
        self._settings = settings
        self._first_attempt = first_attempt
        self.held_elsewhere_count = 0
        """Messages that other partitions of the queue have in flight, as far as anybody said: they count where so many may be (`on_held_elsewhere`)."""
        self._clock = LogClock(log_ms=state.log_ms, now_ms=now_ms)
        self._sent_times = SentTimes(state.sent_times)
        self._sent_times.note(committed_end, self._clock.log_ms(now_ms))
        self._waiting = Waiting()
        self._moving = Moving(state)
        self._tasking = Tasking(state)
        self._unwritten: list[Event] = []
        self._is_urgent = False
        self._write_due_ms: int | None = None
        """Of what is unwritten and not urgent, by the host's clock."""
        self._time_written_ms = now_ms
        self._committed_end = committed_end
        self._reload(now_ms)
        self._begin_move(now_ms, QueueDraft())

    @property
    def known_count(self) -> int:
        """Messages that were read or received and are not settled."""
        return len(self.state.touched) + len(self._outlook.untouched)

    @property
    def held_count(self) -> int:
        """Messages in flight, and others that take as much memory until their time is over."""
        return self._outlook.held_count()

    @property
    def read_end(self) -> int:
        """Offsets below were looked at."""
        return self._outlook.read_end

    @property
    def oldest_sent_at_ms(self) -> int | None:
        """Of the first that is known and not settled; None where there is none, or it is delayed."""
        head = self._outlook.head()
        return None if head is None else self._outlook.sent_at_ms(head)

    def held_up_by(self, offset: int) -> int | None:
        """FIFO: the message before it in its group that is hidden, and has to be visible or done with first."""
        return self._outlook.line.held_up_by(offset)

    @property
    def wants_producer(self) -> bool:
        """Messages that are to be moved wait for a producer id (`ProvideProducer`)."""
        is_any = bool(self._outlook.dying) or self._tasking.wanted is not None
        return self._moving.producer is None and is_any

    def decide(self, token: int, command: AnyCommand, now_ms: int) -> QueueStep:
        draft = QueueDraft()
        try:
            self._decide(token, command, now_ms, draft)
        except QueueError as refusal:
            draft.prompts.append(Reply(token, refusal))
        return draft.finish()

    def on_committed(self, end_offset: int, now_ms: int | None = None) -> None:
        """Records below are committed, and their transactions decided. Ask for `next_read` afterwards. Without the time, what is delayed counts from when it
        is read."""
        self._committed_end = max(self._committed_end, end_offset)
        if now_ms is not None:
            self._sent_times.note(self._committed_end, self._clock.log_ms(now_ms))

    def next_read(self) -> int | None:
        """The offset from which the log is to be read and told by `on_read`; None: nothing is missing."""
        is_wanted = (
            self._waiting or self._outlook.line.looks_further() or self._tasking.wants_more(self._outlook)
        )
        return self._outlook.read_end if is_wanted and self._can_read() else None

    def on_read(self, messages: tuple[Message, ...], end_offset: int, now_ms: int) -> QueueStep:
        """All messages from `next_read` to `end_offset`, committed ones only."""
        draft = QueueDraft()
        self._outlook.know(messages, end_offset, self._clock.log_ms(now_ms))
        self._serve(now_ms, draft)
        self._dismiss_overdue(now_ms, draft)
        return draft.finish()

    def on_held_elsewhere(self, count: int, now_ms: int) -> QueueStep:
        """Other partitions of the queue have so many in flight."""
        draft = QueueDraft()
        self.held_elsewhere_count = count
        self._serve(now_ms, draft)
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
        self.state.deduplication.forget(now_ms)
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
        forget_ms = self.state.deduplication.forgets_at_ms() if self._settings.is_fifo else None
        deadlines += [each_ms for each_ms in (self._head_expires_at_ms(), forget_ms) if each_ms is not None]
        return min(deadlines, default=None)

    def forget(self, token: int) -> None:
        """Nobody waits for this reply any more. What was given to it already has to be released."""
        self._waiting.remove(token)
        self._moving.forget(token)
        self._tasking.forget(token)

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

    def take_snapshot(self, now_ms: int, piece_bytes_max: int = QUEUE_SNAPSHOT_PIECE_BYTES) -> list[bytes]:
        """The same for the whole state: records that are appended one after the other, with nothing in between."""
        self._written(now_ms)
        self.state.deduplication.forget(now_ms)
        return encode_snapshot(self.state, piece_bytes_max)

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
            hidden_group_count=outlook.line.hidden_group_count(),
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
            case NextToMove():
                self._tasking.look(token, command)
                self._serve(now_ms, draft)
                return
            case Move():
                self._tasking.want(token, command)
                self._begin_move(now_ms, draft)
                return
            case BeginTask() | EndTask():
                answer = self._decide_task(command, now_ms)
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
                self._emit(Cleared(end_offset, now_ms if isinstance(command, Purge) else 0), now_ms)
                answer = Noted()
            case Rewind(offset):
                if self.state.move is not None:
                    raise MoveUnderWay("messages are being moved; ask again shortly")
                self._emit(Rewound(offset), now_ms)
                self._reload(now_ms)
                answer = Noted()
            case ProvideProducer(producer_id, producer_epoch):
                self._moving.producer = (producer_id, producer_epoch)
                answer = Noted()
            case EndMove():
                self._end_move(command, now_ms, draft)
                answer = Noted()
        draft.replies.append(Reply(token, answer))
        self._is_urgent = self._is_urgent or bool(self._unwritten)
        self._begin_move(now_ms, draft)
        self._serve(now_ms, draft)
        self._dismiss_overdue(now_ms, draft)

    def _decide_task(self, command: BeginTask | EndTask, now_ms: int) -> TaskShare:
        if isinstance(command, BeginTask):
            task = self.state.task
            if task is None or task.task_id != command.task_id:
                self._emit(TaskBegun(command.task_id, command.end_offset), now_ms)
        elif not self._tasking.check_may_end(command.task_id).ending:
            self._emit(TaskEnded(command.ending, command.reason), now_ms)
        assert self.state.task is not None, "it has begun"
        return self.state.task

    def _receive(self, token: int, command: Receive, now_ms: int, draft: QueueDraft) -> None:
        log_ms = self._log_ms(now_ms)
        batch = repeated(self.state, command, log_ms)
        if batch is None and command.count_max <= 0:
            draft.prompts.append(Reply(token, Received(self.state.attempt)))
            return
        if batch is None:
            if not self._waiting and not self._falls_short(command):
                batch = self._chosen(command, now_ms)
            if batch is None:
                self._park(token, command, log_ms, draft)
                self._serve(now_ms, draft)
                return
        self._give(token, command, batch, now_ms, draft)

    def _chosen(self, command: Receive, now_ms: int) -> Batch | None:
        attempt = max(self.state.attempt + 1, self._first_attempt)
        chosen = choose(
            self._outlook, self._settings, command, room=self._room(), attempt=attempt, now_ms=now_ms
        )
        self._settle(chosen.expired, now_ms)
        return chosen.batch

    def _give(self, token: int, command: Receive, batch: Batch, now_ms: int, draft: QueueDraft) -> None:
        log_ms = self._log_ms(now_ms)
        event = batch.acquired(command, at_ms=log_ms, received_at_ms=now_ms)
        self._outlook.touch(batch.offsets)
        self._emit(event, now_ms)
        if event.until_ms > log_ms:
            self._outlook.give(batch.offsets, event.until_ms)
        else:
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
        self._serve_receivers(now_ms, draft)
        self._serve_task(now_ms, draft)

    def _serve_task(self, now_ms: int, draft: QueueDraft) -> None:
        """Say which messages come next to whoever asked, once that is known."""
        scout, task = self._tasking.scout, self.state.task
        if scout is None or task is None or self._tasking.is_moving():
            return
        token, command = scout
        expired: tuple[int, ...] = (-1,)
        offsets: tuple[int, ...] = ()
        while expired and not offsets:  # fewer are left each time
            offsets, expired = next_of(task, self._outlook, self._settings, command.count_max, now_ms)
            self._settle(expired, now_ms)
        if offsets or self._outlook.read_end >= task.end_offset:
            self._tasking.scout = None
            draft.prompts.append(Reply(token, ToMove(offsets)))

    def _serve_receivers(self, now_ms: int, draft: QueueDraft) -> None:
        """Give what is visible to those who wait, in order of arrival."""
        while self._waiting and self._outlook.line.can_give(1):
            waiter = self._waiting.first()
            if self._gathers(waiter, self._log_ms(now_ms)):
                return
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

    def _falls_short(self, command: Receive) -> bool:
        """Whether it would be given fewer than it wants, while there is more to read."""
        if not self._can_read():
            return False
        wanted = min(command.count_max, QUEUE_RECEIVE_MESSAGES_MAX, self._room())
        return wanted > 0 and not self._outlook.line.can_give(wanted)

    def _room(self) -> int:
        """How many more may be in flight."""
        return self._settings.in_flight_max - self.held_count - self.held_elsewhere_count

    def _gathers(self, waiter: Waiter, log_ms: int) -> bool:
        """Whether it waits a little for more, although there is something for it."""
        if log_ms >= waiter.due_ms or not self._falls_short(waiter.command):
            return False
        if waiter.gathers_until_ms is None:
            waiter.gathers_until_ms = log_ms + QUEUE_GATHER_MS
            self._due_times.set(waiter.gathers_until_ms, due_times.of_token(waiter.token))
        return log_ms < waiter.gathers_until_ms

    def _on_message_due(self, due_ms: int, payload: int, now_ms: int) -> None:
        subject = due_times.subject(payload)
        if subject in self.state.entries:
            entry = self.state.entries[subject]
            if entry.until_ms == due_ms:
                self._surface(subject, now_ms)
        elif subject in self._outlook.delayed:
            self._outlook.ripen(subject, due_ms, due_times.age_ms(payload))

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
        move = self.state.move
        return bool(self._outlook.dying) or (move is not None and not move.task_id)

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
            self._outlook.drop(offsets)
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
        intent = self._task_intent(now_ms, draft)
        if intent is None:
            intent = self._moving.intent(self._outlook.dying, self._settings, now_ms)
        if intent is not None:
            self._emit(intent, now_ms)
            self._is_urgent = True
            for offset in intent.offsets:
                self._outlook.dying.discard(offset)
                self._outlook.line.hide(offset)
        self._hand_over_move(draft)

    def _task_intent(self, now_ms: int, draft: QueueDraft) -> MoveIntended | None:
        """To move what a task has named, as far as it can be received now; None: not now."""
        wanted, task = self._tasking.wanted, self.state.task
        if wanted is None or task is None or self.state.move is not None:
            return None
        token, command = wanted
        offsets = self._outlook.line.among(command.offsets)
        intent = self._moving.intent_of(command, offsets, task.task_id, now_ms) if offsets else None
        if not offsets:
            draft.replies.append(Reply(token, Moved(0, 0)))
        if not offsets or intent is not None:
            self._tasking.wanted = None
            self._tasking.carried = token if offsets else None
        return intent

    def _end_move(self, command: EndMove, now_ms: int, draft: QueueDraft) -> None:
        move = self._moving.check_end(command)
        event = self._moving.ended(command)
        self._outlook.drop(move.offsets[: event.moved_count])
        self._emit(event, now_ms)
        for offset in move.offsets[event.moved_count :]:  # where nobody takes them they stay
            self._outlook.bring_back(offset)
        carried, self._tasking.carried = self._tasking.carried, None
        if carried is not None and move.task_id:
            draft.replies.append(Reply(carried, Moved(event.moved_count, len(move.offsets))))

    def _hand_over_move(self, draft: QueueDraft) -> None:
        draft.replies += self._moving.orders()

    def _reload(self, now_ms: int) -> None:
        """Begin anew with what is visible, from the durable state."""
        self._due_times = DueTimes()
        for waiter in self._waiting.all():
            self._due_times.set(waiter.due_ms, due_times.of_token(waiter.token))
        self._outlook = Outlook(self.state, self._settings, self._clock, self._due_times, self._sent_times)
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
            self._due_times.keep(message_counts=self._outlook.is_due, token_counts=self._waiting.is_due)

    def _written(self, now_ms: int) -> Delta:
        cursor = self._outlook.cursor()
        if cursor > self.state.cursor:
            self._emit(Passed(cursor), now_ms)
        delta = Delta(self._log_ms(now_ms), now_ms, tuple(self._unwritten), self._committed_end)
        self.state.tell_time(delta)
        self._sent_times.note(delta.end_offset, delta.log_ms)
        self._unwritten = []
        self._is_urgent, self._write_due_ms = False, None
        self._time_written_ms = now_ms
        return delta
